from shop.pages import order_page
from shop.store import Store


def test_an_order_page_names_the_customer_of_each_order():
    store = Store({1: 7, 2: 8}, {7: "Ada", 8: "Ben"})
    assert order_page(store) == ["1 Ada", "2 Ben"]


def test_a_page_of_orders_reads_its_customers_in_one_query():
    store = Store({number: number % 3 for number in range(9)}, {0: "Ada", 1: "Ben", 2: "Cem"})
    order_page(store)
    assert store.queries == 2
