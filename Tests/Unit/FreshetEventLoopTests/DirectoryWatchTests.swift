import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@Suite("A directory watch")
struct DirectoryWatchTests {
    @Test("reports names that are removed, and names that appear by a rename")
    func events() async throws {
        try await withLoop { loop in
            let directory = try TemporaryDirectory()
            let path = directory.path
            let (events, continuation) = AsyncStream.makeStream(of: Void.self)
            let watch = try DirectoryWatch(loop, path: path) { continuation.yield() }
            var iterator = events.makeAsyncIterator()
            for name in ["/a", "/b"] { close(open(path + name, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)) }
            unlink(path + "/a")
            await iterator.next()
            rename(path + "/b", path + "/c")
            await iterator.next()
            unlink(path + "/c")
            await iterator.next()
            rmdir(path)
            await iterator.next()
            withExtendedLifetime(watch) {}
        }
    }

    @Test("of a path without a directory is an error with it", arguments: ["/nonexistent/directory", "/etc/passwd"])
    func missing(_ path: String) throws {
        let loop = try EventLoop()
        let error = #expect(throws: SystemCallError.self) { try DirectoryWatch(loop, path: path) {} }
        #expect(error?.subject == path)
    }
}
