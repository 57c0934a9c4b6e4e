/// What follows from a failure that cannot happen: any other failure.
@Sendable func absurd<Failure>(_ never: Never) -> Failure {}
