"""What the tests that start programs share."""

import os
import secrets

# Ray keeps the token of a cluster that it starts in the home folder, which is another one in each test.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
