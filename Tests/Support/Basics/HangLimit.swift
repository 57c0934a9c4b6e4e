package import Testing

extension Trait where Self == TimeLimitTrait {
    /// What ends a test that would hang for ever. No test comes near it, also not where each step is many times as slow.
    package static var hangLimit: Self { .timeLimit(.minutes(5)) }
}
