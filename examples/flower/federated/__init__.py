"""A Flower app whose arrays and rounds live in a parameter server."""
