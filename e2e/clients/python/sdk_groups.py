"""Consumer groups."""


def check(admin, messages):
    raise NotImplementedError
