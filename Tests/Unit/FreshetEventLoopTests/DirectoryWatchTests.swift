import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@Suite("A directory's watch")
struct DirectoryWatchTests {
    @Test("tells of names that go, and of names that come by a rename")
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

    @Test("of what is no directory is an error that names it", arguments: ["/nonexistent/directory", "/etc/passwd"])
    func missing(_ path: String) throws {
        let loop = try EventLoop()
        let error = #expect(throws: SystemCallError.self) { try DirectoryWatch(loop, path: path) {} }
        #expect(error?.subject == path)
    }
}
