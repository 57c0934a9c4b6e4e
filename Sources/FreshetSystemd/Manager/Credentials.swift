import Glibc

/// The secrets of this service: files in `$CREDENTIALS_DIRECTORY` (systemd.exec(5), `LoadCredential=`, `SetCredential=`
/// and related options).
///
/// A service manager writes the files when the service starts and does not change them while it runs. Without a service
/// manager, set the variable to a directory of files.
///
/// ```swift
/// let credentials = Credentials(environment: environment)
/// let token = try credentials.secret(named: "api-token")
/// ```
public struct Credentials: Hashable, Sendable {
    /// The maximum length of a secret in bytes, without a line break at its end: the usual limit of servers for all
    /// headers together.
    public static let sizeLimit = 8_192
    /// The maximum length of a name in bytes.
    public static let nameLimit = 64

    /// An absolute path; nil: the service has no credentials.
    public let directory: String?

    /// - Parameter environment: The process's environment; only `CREDENTIALS_DIRECTORY` is used.
    public init(environment: [String: String]) {
        self.init(directory: environment["CREDENTIALS_DIRECTORY"].flatMap { $0.hasPrefix("/") ? $0 : nil })
    }

    public init(directory: String?) {
        self.directory = directory
    }

    /// Reads a secret: one line of printable ASCII. A line break at its end, which editors and echo(1) add, is removed.
    /// It blocks on the file.
    public func secret(named name: String) throws(CredentialError) -> String {
        guard Self.isName(name) else { throw CredentialError(.notNamed, name) }
        guard let directory else { throw CredentialError(.missing, name) }
        let descriptor = open("\(directory)/\(name)", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw CredentialError(errno == ENOENT ? .missing : .unreadable(errno: errno), name)
        }
        defer { close(descriptor) }
        return try Self.secret(in: try Self.read(descriptor, name), name)
    }

    /// The secret in the content of a file: one line of printable ASCII, without the line break at its end.
    ///
    /// - Parameters:
    ///   - content: the bytes of the file.
    ///   - name: the credential's name or the file's path, for the error.
    public static func secret(in content: [UInt8], _ name: String) throws(CredentialError) -> String {
        var bytes = content
        while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard !bytes.isEmpty else { throw CredentialError(.empty, name) }
        guard bytes.count <= Self.sizeLimit else { throw CredentialError(.tooLong, name) }
        let space = UInt8(ascii: " ")
        guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }), bytes.first != space, bytes.last != space else {
            throw CredentialError(.notOneLine, name)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The path of a credential that is not a line of text, such as a certificate in PEM, for libraries that read
    /// files. The file exists, is not empty and can be read; its content is not checked. It blocks on the file.
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

    /// The path of a credential's file; nil: a credential cannot have this name, or the service has no credentials.
    public func path(of name: String) -> String? {
        Self.isName(name) ? directory.map { "\($0)/\(name)" } : nil
    }

    /// Whether a credential can have this name: letters, digits, `-`, `_` and `.`, without a dot at the start, so that
    /// it is valid as a file name and as an identifier in a unit.
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

    /// Reads a file, up to a little more than the limit.
    private static func read(_ descriptor: Int32, _ name: String) throws(CredentialError) -> [UInt8] {
        // Space for a line break of two bytes, and one byte that shows that the file is longer.
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

/// Why a credential cannot be used. The error never contains the credential's content.
public struct CredentialError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Reason: Hashable, Sendable {
        /// A credential cannot have this name.
        case notNamed
        /// The service was started without the credential.
        case missing
        /// The system refused to read the file.
        case unreadable(errno: Int32)
        case empty
        /// It has more than ``Credentials/sizeLimit`` bytes.
        case tooLong
        /// It contains a control character or a character that is not ASCII, or begins or ends with a space.
        case notOneLine
    }

    public let reason: Reason
    /// The credential's name.
    public let name: String

    public init(_ reason: Reason, _ name: String) {
        self.reason = reason
        self.name = name
    }

    /// A file has a path, and a credential of the service has a name, which has no slash.
    private var isFile: Bool { name.hasPrefix("/") }
    private var subject: String { isFile ? "the credential file \(name)" : "the credential '\(name)'" }

    /// The error, without a full stop.
    public var message: String {
        switch reason {
        case .notNamed: "a credential cannot have this name"
        case .missing: "the service was started without the credential '\(name)'"
        case .unreadable(let number):
            "the credential '\(name)' cannot be read: \(strerror(number).map { String(cString: $0) } ?? "error \(number)")"
        case .empty: "\(subject) is empty"
        case .tooLong: "\(subject) has more than \(Credentials.sizeLimit) bytes"
        case .notOneLine:
            "\(subject) is not one line of printable ASCII, or begins or ends with a space"
        }
    }

    /// How to repair it.
    public var remedy: String {
        switch reason {
        case .empty where isFile, .tooLong where isFile, .notOneLine where isFile:
            "write the secret into the file, as one line"
        case .notNamed: "use at most \(Credentials.nameLimit) letters, digits, '-', '_' and '.'"
        case .missing:
            "put it into /etc/credstore/\(name), add LoadCredential=\(name):/etc/credstore/\(name) below [Service] by "
                + "'systemctl edit freshetd', and restart the service"
        case .unreadable: "let the service's user read the file in $CREDENTIALS_DIRECTORY"
        case .empty, .tooLong, .notOneLine: "repair the file that LoadCredential= names, and restart the service"
        }
    }

    public var description: String { "\(message); \(remedy)" }
}
