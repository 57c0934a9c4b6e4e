import FreshetEventLoop
import Glibc
import Testing

@testable import FreshetVarlink

@Suite struct ListenerTests {
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let directory = try temporaryDirectory()
        defer {
            unlink(directory + "/s")
            #expect(rmdir(directory) == 0, "nothing but the socket was made")
        }
        try body(directory)
    }

    @Test("anybody may connect: the mode is 0666 whatever the umask")
    func mode() throws {
        try withDirectory { directory in
            let listener = try VarlinkListener(path: directory + "/s")
            var info = stat()
            try #require(lstat(directory + "/s", &info) == 0)
            #expect(info.st_mode & 0o777 == 0o666)
            listener.close()
            #expect(lstat(directory + "/s", &info) != 0)
        }
    }

    @Test("a live socket is not replaced")
    func live() throws {
        try withDirectory { directory in
            let listener = try VarlinkListener(path: directory + "/s")
            #expect(throws: VarlinkListener.Failure.inUse(path: directory + "/s")) {
                try VarlinkListener(path: directory + "/s")
            }
            _ = try VarlinkClient(path: directory + "/s")
            listener.close()
        }
    }

    @Test("a socket that a crash left behind is replaced")
    func stale() throws {
        try withDirectory { directory in
            let left = try UnixAddress.makeSocket()
            let address = try #require(UnixAddress(path: directory + "/s"))
            #expect(address.apply(bind, to: left) == 0)
            let listener = try VarlinkListener(path: directory + "/s")
            _ = try VarlinkClient(path: directory + "/s")
            listener.close()
        }
    }

    @Test("a file that is no socket is left alone")
    func notASocket() throws {
        try withDirectory { directory in
            let file = open(directory + "/s", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
            try #require(file >= 0)
            close(file)
            #expect(throws: VarlinkListener.Failure.notASocket(path: directory + "/s")) {
                try VarlinkListener(path: directory + "/s")
            }
            #expect(access(directory + "/s", F_OK) == 0)
        }
    }

    @Test("closing does not remove the socket of a successor")
    func successor() throws {
        try withDirectory { directory in
            let first = try VarlinkListener(path: directory + "/s")
            unlink(directory + "/s")
            let second = try VarlinkListener(path: directory + "/s")
            first.close()
            _ = try VarlinkClient(path: directory + "/s")
            second.close()
        }
    }

    @Test("a path of the limit serves, a longer one is refused by name")
    func pathLimit() throws {
        try withDirectory { directory in
            let deep = directory + "/" + String(repeating: "d", count: 107 - directory.utf8.count - 20)
            try #require(mkdir(deep, 0o700) == 0)
            defer { rmdir(deep) }
            let path = deep + "/" + String(repeating: "s", count: 107 - deep.utf8.count - 1)
            #expect(path.utf8.count == 107)
            let listener = try VarlinkListener(path: path)
            _ = try VarlinkClient(path: path)
            listener.close()
            #expect(throws: VarlinkListener.Failure.pathTooLong(path: path + "x", limit: 107)) {
                try VarlinkListener(path: path + "x")
            }
        }
    }

    @Test("a directory that is missing is said")
    func noDirectory() throws {
        let error = #expect(throws: VarlinkListener.Failure.self) {
            try VarlinkListener(path: "/nonexistent/directory/s")
        }
        #expect(error?.description.contains("No such file or directory") == true)
    }

    @Test("an inherited socket must listen")
    func inherited() throws {
        let socket = try UnixAddress.makeSocket()
        #expect(throws: VarlinkListener.Failure.self) { try VarlinkListener(inherited: dup(socket.rawValue)) }
        try withDirectory { directory in
            let address = try #require(UnixAddress(path: directory + "/s"))
            #expect(address.apply(bind, to: socket) == 0)
            #expect(listen(socket.rawValue, 1) == 0)
            let listener = try VarlinkListener(inherited: dup(socket.rawValue))
            listener.close()
            #expect(access(directory + "/s", F_OK) == 0, "its name is the service manager's")
        }
    }
}
