"""What the checks of both clients say, as the frame reads it."""


def ok(operation, what):
    print("ok", operation, what, sep="\t", flush=True)


def same(operation, what, got, want):
    """One check: what was got is what is wanted."""
    if got != want:
        raise AssertionError(f"{operation}: {what}: got {got!r}, want {want!r}")
    ok(operation, what)


def true(operation, what, got, shown=None):
    """One check: got is true; shown is printed if it is not."""
    if not got:
        raise AssertionError(f"{operation}: {what}: {shown if shown is not None else got!r}")
    ok(operation, what)
