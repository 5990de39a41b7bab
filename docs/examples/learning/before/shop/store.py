"""The store: rows, and how many queries were made for them."""


class Store:
    """Orders and customers, each by its number."""

    def __init__(self, orders, customers):
        self._orders, self._customers = orders, customers
        self.queries = 0

    def orders(self):
        """Return the number of the customer of each order."""
        self.queries += 1
        return dict(self._orders)

    def customers(self, numbers):
        """Return the names of some customers, by number."""
        self.queries += 1
        return {number: self._customers[number] for number in numbers}
