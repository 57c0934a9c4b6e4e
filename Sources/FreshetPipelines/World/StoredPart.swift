/// What one request of a staged pipeline delivered last: a part of its snapshot.
package struct StoredPart: Hashable, Sendable {
    /// What the value depends on: the request, the programs, and what stood around them. Validators are used again only
    /// while it is the same.
    package var binding: String
    package var validators: Validators
    /// One JSON text.
    package var value: [UInt8]

    package init(binding: String, validators: Validators, value: [UInt8]) {
        self.binding = binding
        self.validators = validators
        self.value = value
    }
}
