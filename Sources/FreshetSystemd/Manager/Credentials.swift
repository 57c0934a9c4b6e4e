import Glibc

/// The secrets that were handed to this service: files in `$CREDENTIALS_DIRECTORY` (systemd.exec(5), `LoadCredential=`,
/// `SetCredential=` and their kin).
///
/// A service manager lays them down when the service starts and never changes them while it runs; without one, whoever
/// starts the program sets the variable to a directory of files.
///
/// ```swift
/// let credentials = Credentials(environment: environment)
/// let token = try credentials.secret(named: "api-token")
/// ```
public struct Credentials: Hashable, Sendable {
    /// The longest secret in bytes, without the line break at its end: what servers commonly take for all headers
    /// together.
    public static let sizeLimit = 8_192
    /// The longest name in bytes.
    public static let nameLimit = 64

    /// Absolute; nil: no credentials were handed over.
    public let directory: String?

    /// - Parameter environment: the process's environment; only `CREDENTIALS_DIRECTORY` is looked at.
    public init(environment: [String: String]) {
        self.init(directory: environment["CREDENTIALS_DIRECTORY"].flatMap { $0.hasPrefix("/") ? $0 : nil })
    }

    public init(directory: String?) {
        self.directory = directory
    }

    /// Reads a secret: one line of printable ASCII. A line break at its end, which editors and echo(1) leave, is no part
    /// of it. Blocks on the file.
    public func secret(named name: String) throws(CredentialError) -> String {
        guard Self.isName(name) else { throw CredentialError(.notNamed, name) }
        guard let directory else { throw CredentialError(.missing, name) }
        let descriptor = open("\(directory)/\(name)", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw CredentialError(errno == ENOENT ? .missing : .unreadable(errno: errno), name)
        }
        defer { close(descriptor) }
        var bytes = try Self.read(descriptor, name)
        while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard !bytes.isEmpty else { throw CredentialError(.empty, name) }
        guard bytes.count <= Self.sizeLimit else { throw CredentialError(.tooLong, name) }
        let space = UInt8(ascii: " ")
        guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }), bytes.first != space, bytes.last != space else {
            throw CredentialError(.notOneLine, name)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The path of a credential that is no line of text, such as a certificate in PEM: for libraries that read files. It
    /// is there, is not empty, and can be read; what is in it is not looked at. Blocks on the file.
    public func file(named name: String) throws(CredentialError) -> String {
        guard Self.isName(name) else { throw CredentialError(.notNamed, name) }
        guard let directory else { throw CredentialError(.missing, name) }
        let path = "\(directory)/\(name)"
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw CredentialError(errno == ENOENT ? .missing : .unreadable(errno: errno), name)
        }
        defer { close(descriptor) }
        guard try !Self.read(descriptor, name).isEmpty else { throw CredentialError(.empty, name) }
        return path
    }

    /// Whether a credential can have this name: letters, digits, `-`, `_` and `.`, not first a dot, so that it is a file
    /// here and an identifier in a unit.
    public static func isName(_ name: String) -> Bool {
        (1...nameLimit).contains(name.utf8.count) && name.utf8.first != UInt8(ascii: ".")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }

    /// All of a file, or more than may be of it.
    private static func read(_ descriptor: Int32, _ name: String) throws(CredentialError) -> [UInt8] {
        // A line break of two bytes, and one byte that shows that there is more.
        var buffer = [UInt8](repeating: 0, count: sizeLimit + 3)
        var size = 0
        while size < buffer.count {
            let count = buffer.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress?.advanced(by: size), $0.count - size)
            }
            if count == 0 { break }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw CredentialError(.unreadable(errno: errno), name) }
            size += count
        }
        return Array(buffer[..<size])
    }
}

/// Why a credential cannot be used. Nothing here quotes its content.
public struct CredentialError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Reason: Hashable, Sendable {
        /// The name is none that a credential can have.
        case notNamed
        /// The service was started without it.
        case missing
        /// The system refused to read it.
        case unreadable(errno: Int32)
        case empty
        /// It has more than ``Credentials/sizeLimit`` bytes.
        case tooLong
        /// It has a control character, one that is not ASCII, or a space at an end.
        case notOneLine
    }

    public let reason: Reason
    /// The credential's name.
    public let name: String

    public init(_ reason: Reason, _ name: String) {
        self.reason = reason
        self.name = name
    }

    /// What is wrong, without a full stop.
    public var message: String {
        switch reason {
        case .notNamed: "a credential cannot have such a name"
        case .missing: "the service was started without the credential '\(name)'"
        case .unreadable(let number):
            "the credential '\(name)' cannot be read: \(strerror(number).map { String(cString: $0) } ?? "error \(number)")"
        case .empty: "the credential '\(name)' is empty"
        case .tooLong: "the credential '\(name)' has more than \(Credentials.sizeLimit) bytes"
        case .notOneLine:
            "the credential '\(name)' is not one line of ASCII without control characters and without a space at its ends"
        }
    }

    /// What to do about it.
    public var remedy: String {
        switch reason {
        case .notNamed: "name it in at most \(Credentials.nameLimit) letters, digits, '-', '_' and '.'"
        case .missing:
            "put it into /etc/credstore/\(name), add LoadCredential=\(name):/etc/credstore/\(name) below [Service] by "
                + "'systemctl edit freshetd', and restart the service"
        case .unreadable: "the service's user has to be able to read it in $CREDENTIALS_DIRECTORY"
        case .empty, .tooLong, .notOneLine: "mend the file that LoadCredential= names, and restart the service"
        }
    }

    public var description: String { "\(message); \(remedy)" }
}
