"""Pages of the shop."""


def order_page(store):
    """Return a line for each order: its number and the name of its customer."""
    lines = []
    for order, customer in store.orders().items():
        name = store.customers([customer])[customer]
        lines.append(f"{order} {name}")
    return lines
