/// A subject to which a message is sent: tokens of printable ASCII characters, separated by dots, without wildcards.
///
/// ```swift
/// let subject = try NATSSubject("$JS.API.DIRECT.GET.KV_FT_head")
/// ```
///
/// A valid subject cannot end a line of the protocol or add an argument to it.
public struct NATSSubject: Hashable, Sendable, CustomStringConvertible {
    /// The longest subject, in bytes: a quarter of the longest line that a server accepts by default (4,096), because a
    /// line may have two subjects.
    public static let longest = 1_024

    public let description: String

    /// - Parameter text: the subject.
    public init(_ text: String) throws(NATSError) {
        guard text.utf8.count <= Self.longest, Self.isValid(text, allowingWildcards: false) else {
            throw .invalidSubject(text)
        }
        description = text
    }

    /// A subject of this library whose parts are known to be valid.
    init(trusted text: String) { description = text }

    /// Whether the text has tokens that are not empty, of characters that are allowed. A wildcard is a token by itself;
    /// `>` is the last token.
    static func isValid(_ text: String, allowingWildcards: Bool) -> Bool {
        let tokens = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        for (index, token) in tokens.enumerated() {
            guard !token.isEmpty, token.allSatisfy({ (0x21...0x7E).contains($0) }) else { return false }
            for wildcard in "*>".utf8 where token.contains(wildcard) {
                guard allowingWildcards, token.count == 1 else { return false }
                if wildcard == UInt8(ascii: ">"), index != tokens.count - 1 { return false }
            }
        }
        return true
    }
}

/// The subjects to which a subscription applies: a subject in which a token may be `*` (one token), and the last token
/// `>` (one or more tokens).
public struct NATSSubjectPattern: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    /// - Parameter text: the pattern, at most ``NATSSubject/longest`` bytes.
    public init(_ text: String) throws(NATSError) {
        guard text.utf8.count <= NATSSubject.longest, NATSSubject.isValid(text, allowingWildcards: true) else {
            throw .invalidSubject(text)
        }
        description = text
    }

    /// The pattern that only this subject matches.
    public init(_ subject: NATSSubject) { description = subject.description }

    /// A pattern of this library whose parts are known to be valid.
    init(trusted text: String) { description = text }
}
