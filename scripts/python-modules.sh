# Modules of Python that the package is built, tested and checked with: for the scripts that source it.
# shellcheck disable=SC2034

# Come with CPython, but in Debian not with all of it.
readonly BUILD_MODULES=(venv ensurepip)

# In Debian python3-NAME.
readonly TEST_MODULES=(numpy h5py torch pytest hypothesis)
