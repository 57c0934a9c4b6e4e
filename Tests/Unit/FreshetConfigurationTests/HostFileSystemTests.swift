import Glibc
import TestSupport
import Testing

@testable import FreshetConfiguration

@Suite("The host's files")
struct HostFileSystemTests {
    private let files = HostFileSystem()

    @Test("a file's bytes are read, up to the limit")
    func reading() throws {
        let scratch = try TemporaryDirectory()
        let path = try scratch.write("12345", to: "a.yaml")
        #expect(try files.content(ofFile: path, limit: 5) == .bytes(Array("12345".utf8)))
        #expect(throws: FileError.tooLarge(limit: 4)) { try files.content(ofFile: path, limit: 4) }
        #expect(try files.content(ofFile: scratch.write("", to: "empty"), limit: 5) == .bytes([]))
        #expect(try files.names(inDirectory: scratch.path)?.sorted() == ["a.yaml", "empty"])
        // A file of procfs has the size 0, but has content.
        guard case .bytes(let bytes) = try files.content(ofFile: "/proc/self/status", limit: 1 << 20) else {
            Issue.record("no bytes")
            return
        }
        #expect(String(decoding: bytes, as: UTF8.self).contains("VmRSS"))
    }

    @Test("links are followed: a link to the null device masks, and a dangling link is an error")
    func links() throws {
        let scratch = try TemporaryDirectory()
        #expect(symlink("/dev/null", scratch.path("mask")) == 0)
        #expect(symlink("mask", scratch.path("chain")) == 0)
        #expect(symlink("nothing", scratch.path("dangling")) == 0)
        #expect(try files.content(ofFile: "\(scratch.path)/mask", limit: 1) == .masked)
        #expect(try files.content(ofFile: "\(scratch.path)/chain", limit: 1) == .masked)
        #expect(throws: FileError.danglingLink) { try files.content(ofFile: "\(scratch.path)/dangling", limit: 1) }
        #expect(try files.content(ofFile: "\(scratch.path)/nothing", limit: 1) == .absent)
        #expect(try files.names(inDirectory: "\(scratch.path)/nothing") == nil)
    }

    @Test("a pipe or a directory in place of a file is an error, and reading does not block")
    func notRegular() throws {
        let scratch = try TemporaryDirectory()
        #expect(mkfifo(scratch.path("pipe"), 0o600) == 0)
        #expect(throws: FileError.notRegular) { try files.content(ofFile: "\(scratch.path)/pipe", limit: 1) }
        #expect(throws: FileError.notRegular) { try files.content(ofFile: scratch.path, limit: 1) }
        let path = try scratch.write("", to: "a")
        let error = #expect(throws: FileError.self) { try files.names(inDirectory: path) }
        #expect(error?.message == "a directory is expected here: Not a directory")
    }

    @Test("a file that the user may not read is an error that names the user")
    func forbidden() throws {
        let scratch = try TemporaryDirectory()
        // Write-only even for root, which may read every ordinary file.
        var path = "/proc/sys/net/ipv4/route/flush"
        if geteuid() != 0 {
            path = try scratch.write("", to: "a")
            chmod(path, 0)
        }
        let error = #expect(throws: FileError.self) { try files.content(ofFile: path, limit: 1) }
        let name = try #require(getpwuid(geteuid())?.pointee.pw_name)
        #expect(error?.message == "the user '\(String(cString: name))' may not read this: Permission denied")
    }
}
