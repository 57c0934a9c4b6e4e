package import Testing

extension Trait where Self == TimeLimitTrait {
    /// Ends a test that hangs. A test that works stays far below this limit, also on a busy machine.
    package static var hangLimit: Self { .timeLimit(.minutes(5)) }
}
