from shop.pages import order_page
from shop.store import Store


def test_an_order_page_names_the_customer_of_each_order():
    store = Store({1: 7, 2: 8}, {7: "Ada", 8: "Ben"})
    assert order_page(store) == ["1 Ada", "2 Ben"]
