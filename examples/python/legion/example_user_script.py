"""Legion's first example: a cube of zeros in an array of -1, and updates of a part of it.

    legion examples/python/legion/example_user_script.py --instances 2

Each worker moves four of the elements halfway from what they are to its own value.
"""

import numpy as np

from legion import Client

client = Client()

array = np.full((10, 20, 30), -1, np.float32)
array[2:5, 2:5, 2:5] = 0
array = client.create_if_not_already_created("array", array)

part = [[0], [1, 4], [1, 6]]
alpha = beta = 0.5
before = client.pull_part("array", part)
client.push_as_part("array", np.full(before.shape, 7, np.float32), part, alpha, beta)
after = client.pull_part("array", part)

print("before:", before.ravel())
print("after: ", after.ravel())
