/// Converts a failure that cannot happen to any failure type.
@Sendable func absurd<Failure>(_ never: Never) -> Failure {}
