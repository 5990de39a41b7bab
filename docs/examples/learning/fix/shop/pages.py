"""Pages of the shop."""


def order_page(store):
    """Return a line for each order: its number and the name of its customer."""
    orders = store.orders()
    names = store.customers(set(orders.values()))
    return [f"{order} {names[customer]}" for order, customer in orders.items()]
