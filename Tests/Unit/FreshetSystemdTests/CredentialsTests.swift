import Glibc
import TestSupport
import Testing

@testable import FreshetSystemd

@Suite("Credentials")
final class CredentialsTests {
    private let temporary: TemporaryDirectory
    private var directory: String { temporary.path }

    init() throws { temporary = try TemporaryDirectory() }

    private var credentials: Credentials { Credentials(environment: ["CREDENTIALS_DIRECTORY": directory]) }

    private func write(_ bytes: [UInt8]) throws {
        try TemporaryDirectory.write(bytes, to: temporary.path("token"))
    }

    private func reason(_ body: (Credentials) throws(CredentialError) -> String) -> CredentialError.Reason? {
        do throws(CredentialError) {
            _ = try body(credentials)
            return nil
        } catch {
            return error.reason
        }
    }

    private func reason(of bytes: [UInt8]) throws -> CredentialError.Reason? {
        try write(bytes)
        return reason { (credentials) throws(CredentialError) in try credentials.secret(named: "token") }
    }

    @Test(
        "are files without the line break at their end",
        arguments: [
            ("s3cret", "s3cret"), ("s3cret\n", "s3cret"), ("s3cret\r\n", "s3cret"), ("Basic abc=\n\n", "Basic abc="),
        ])
    func read(_ content: String, _ secret: String) throws {
        try write(Array(content.utf8))
        #expect(try credentials.secret(named: "token") == secret)
    }

    @Test("that could end a header, or are empty, are refused")
    func refused() throws {
        for content in ["a\nb", "a\rb", "a\0b", "a\tb", "a\u{7F}b", "b\u{FC}", " a", "a "] {
            #expect(try reason(of: Array(content.utf8)) == .notOneLine, "\(content.debugDescription)")
        }
        #expect(try reason(of: [0xFF, 0xFE]) == .notOneLine)
        for content in ["", "\n", "\r\n"] { #expect(try reason(of: Array(content.utf8)) == .empty) }
    }

    @Test("have at most 8 KiB, without a line break at the end")
    func limit() throws {
        let longest = [UInt8](repeating: UInt8(ascii: "x"), count: Credentials.sizeLimit)
        try write(longest + Array("\r\n".utf8))
        #expect(try credentials.secret(named: "token").utf8.count == 8_192)
        #expect(try reason(of: longest + [UInt8(ascii: "x")]) == .tooLong)
        #expect(try reason(of: longest + longest) == .tooLong)
    }

    @Test("of any length that are files have a path, if they can be read")
    func files() throws {
        try write([UInt8](repeating: 10, count: Credentials.sizeLimit * 2))
        #expect(try credentials.file(named: "token") == directory + "/token")
        try write([])
        #expect(reason { (it) throws(CredentialError) in try it.file(named: "token") } == .empty)
        #expect(reason { (it) throws(CredentialError) in try it.file(named: "none") } == .missing)
        #expect(reason { (it) throws(CredentialError) in try it.file(named: "../x") } == .notNamed)
    }

    @Test("that are missing are reported with the line that adds them")
    func missing() throws {
        for credentials in [credentials, Credentials(environment: [:]), Credentials(directory: nil)] {
            let error = #expect(throws: CredentialError.self) { try credentials.secret(named: "api-token") }
            #expect(error?.reason == .missing)
            #expect(error?.description.contains("LoadCredential=api-token:/etc/credstore/api-token") == true)
            #expect(error?.description.contains("restart the service") == true)
        }
        #expect(Credentials(environment: ["CREDENTIALS_DIRECTORY": "relative"]).directory == nil)
    }

    @Test("have names that are valid file names")
    func names() {
        for name in ["a", "api-token", "A_1.b", String(repeating: "x", count: 64)] { #expect(Credentials.isName(name)) }
        for name in ["", ".", "..", ".a", "a/b", "../token", "a:b", "a b", "\u{FC}", String(repeating: "x", count: 65)]
        {
            #expect(!Credentials.isName(name), "\(name)")
            #expect(
                reason { (credentials) throws(CredentialError) in try credentials.secret(named: name) } == .notNamed)
        }
    }

    @Test("that are directories cannot be read, and the error has the reason")
    func directoryInPlace() throws {
        try #require(mkdir(directory + "/token", 0o700) == 0)
        defer { rmdir(directory + "/token") }
        #expect(
            reason { (credentials) throws(CredentialError) in try credentials.secret(named: "token") }
                == .unreadable(errno: EISDIR))
    }
}
