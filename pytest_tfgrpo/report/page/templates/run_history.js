// Tables of the history that sort by a click on a head.

for (const table of document.querySelectorAll("table.sortable")) sortable(table);
