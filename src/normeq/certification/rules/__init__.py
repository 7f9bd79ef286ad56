"""The laws of operations, by what they treat; importing this package registers them."""
