/// Content that a check has refused, for as long as that check says: its source is asked whether it still has it, and not
/// for all of it again.
struct KnownRefusal: Hashable, Sendable {
    /// What is kept aside.
    var snapshot: RefusedSnapshot
    var failure: RunFailure
    /// What the source called it.
    var validators: Validators
    /// What they are bound to besides the content.
    var binding: String
}
