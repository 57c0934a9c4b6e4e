import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@testable import FreshetVarlink

@Suite struct ListenerTests {
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        defer {
            unlink(directory.path("s"))
            #expect(TemporaryDirectory.names(directory.path) == [], "nothing but the socket was made")
        }
        try body(directory.path)
    }

    @Test("every user may connect: the mode is 0666 regardless of the umask")
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

    @Test("a file that is not a socket is not replaced")
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

    @Test("a path at the limit is accepted, and the error for a longer path names it")
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

    @Test("the error for a missing directory names the path")
    func noDirectory() throws {
        let error = #expect(throws: VarlinkListener.Failure.self) {
            try VarlinkListener(path: "/nonexistent/directory/s")
        }
        #expect(error?.description.contains("No such file or directory") == true)
    }

    @Test("a listener detects whether its socket is still at its path")
    func inPlace() throws {
        try withDirectory { directory in
            let first = try VarlinkListener(path: directory + "/s")
            #expect(first.path == directory + "/s")
            #expect(first.isInPlace)
            unlink(directory + "/s")
            #expect(!first.isInPlace)
            let second = try VarlinkListener(path: directory + "/s")
            #expect(second.isInPlace)
            #expect(!first.isInPlace, "another socket is there")
            second.close()
        }
    }

    @Test("an inherited socket is served, not inherited by children, and not removed")
    func inherited() throws {
        try withDirectory { directory in
            let socket = try UnixAddress.makeSocket()
            let address = try #require(UnixAddress(path: directory + "/s"))
            #expect(address.apply(bind, to: socket) == 0)
            #expect(listen(socket.rawValue, 1) == 0)
            let passed = dup(socket.rawValue)
            let listener = try VarlinkListener(inherited: passed)
            #expect(fcntl(passed, F_GETFD) & FD_CLOEXEC != 0)
            #expect(listener.path == directory + "/s")
            #expect(listener.isInPlace)
            listener.close()
            #expect(access(directory + "/s", F_OK) == 0)
            unlink(directory + "/s")
            #expect(!listener.isInPlace)
        }
    }

    @Test("an unsuitable inherited descriptor is an error that names what a socket unit needs")
    func unsuitable() throws {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        let unbound = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let datagram = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        let sequence = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        let network = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        for listening in [sequence, network] {
            // The kernel gives each socket its own address.
            if listening == sequence {
                var family = sa_family_t(AF_UNIX)
                let size = socklen_t(MemoryLayout<sa_family_t>.size)
                withUnsafeMutableBytes(of: &family) { bytes in
                    guard let address = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return }
                    #expect(bind(listening, address, size) == 0)
                }
            }
            try #require(listen(listening, 1) == 0)
        }
        for descriptor in [null, unbound, datagram, sequence, network] {
            let failure = #expect(throws: VarlinkListener.Failure.unsuitable(descriptor: descriptor)) {
                try VarlinkListener(inherited: descriptor)
            }
            #expect(failure?.description.contains("ListenStream=") == true)
        }
    }

    @Test("a listener can turn away waiting clients with an error that each of them reads")
    func turnAway() throws {
        try withDirectory { directory in
            let listener = try VarlinkListener(path: directory + "/s")
            let clients = try (0..<3).map { _ in try RawClient(path: directory + "/s") }
            listener.turnAway(with: VarlinkErrorReply("a.Ending"))
            for client in clients {
                // As a client that sends its call before it reads.
                client.send("{\"method\":\"a.B\"}\0")
                #expect(try client.receive() == "{\"error\":\"a.Ending\",\"parameters\":{}}")
                #expect(try client.receive() == nil)
            }
            listener.turnAway(with: VarlinkErrorReply("a.Ending"))
            listener.close()
        }
    }
}
