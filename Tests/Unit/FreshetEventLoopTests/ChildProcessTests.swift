import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@Suite("A child process")
struct ChildProcessTests {
    private func shell(
        _ script: String, environment: [String: String] = [:], endsDescendants: Bool = false, on loop: EventLoop
    ) async throws -> (exit: ChildProcess.Exit, output: String) {
        let output = try Pipe()
        let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open")
        let child = try ChildProcess(
            loop, ChildProcess.Command(path: "/bin/sh", arguments: ["-c", script], environment: environment),
            input: null.rawValue, output: output.writing.rawValue, error: null.rawValue,
            endsDescendants: endsDescendants)
        let exit = await child.wait()
        return (exit, output.read())
    }

    @Test("reports its exit status or the signal that ended it", arguments: [false, true])
    func status(endsDescendants: Bool) async throws {
        try await withLoop { loop in
            for (script, expected) in [
                ("exit 0", ChildProcess.Exit.exited(status: 0)), ("exit 7", .exited(status: 7)),
                ("kill -TERM $$", .signalled(SIGTERM)),
            ] {
                let ended = try await shell(script, endsDescendants: endsDescendants, on: loop)
                #expect(ended.exit == expected)
            }
        }
    }

    @Test("has only the given environment, and only three descriptors", arguments: [false, true])
    func clean(endsDescendants: Bool) async throws {
        try await withLoop { loop in
            let extra = try OwnedDescriptor(open("/dev/null", O_RDONLY), of: "open")
            let (_, environment) = try await shell(
                "/usr/bin/env", environment: ["A": "b c"], endsDescendants: endsDescendants, on: loop)
            #expect(environment.split(separator: "\n").contains("A=b c"))
            #expect(!environment.contains("HOME="))
            let list = "for n in 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$n && echo $n; done"
            let (_, descriptors) = try await shell(list, endsDescendants: endsDescendants, on: loop)
            #expect(descriptors == "")
            withExtendedLifetime(extra) {}
        }
    }

    @Test("does not inherit blocked or ignored signals", arguments: [false, true])
    func signals(endsDescendants: Bool) async throws {
        try await withLoop { loop in
            let (_, text) = try await shell(
                "exec grep -E '^Sig(Blk|Ign)' /proc/self/status", endsDescendants: endsDescendants, on: loop)
            let masks = text.split(separator: "\n").compactMap { line in
                line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) }
            }
            #expect(masks == [0, 0], "\(text)")
        }
    }

    @Test(
        "has a usual limit of descriptors, and can raise it, even if its parent has a higher limit",
        arguments: [false, true])
    func descriptorLimit(endsDescendants: Bool) async throws {
        // Raised and left so: lowering the limit again would affect other tests.
        var limit = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        let hard = limit.rlim_max
        try #require(hard > ChildProcess.descriptorLimit)
        limit.rlim_cur = hard
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        try await withLoop { loop in
            let (_, text) = try await shell("ulimit -Sn; ulimit -Hn", endsDescendants: endsDescendants, on: loop)
            #expect(text == "1024\n\(hard)\n")
        }
    }

    @Test("starts in the given directory, with the given descriptors, in its own group")
    func place() async throws {
        try await withLoop { loop in
            let output = try Pipe()
            let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open")
            let child = try ChildProcess(
                loop,
                ChildProcess.Command(
                    path: "/bin/sh",
                    arguments: ["-c", "pwd; readlink /proc/$$/fd/0; echo $$; cut -d' ' -f5 /proc/$$/stat"],
                    environment: ["PATH": "/usr/bin:/bin"], directory: "/usr"),
                input: null.rawValue, output: output.writing.rawValue, error: output.writing.rawValue)
            #expect(await child.wait() == .exited(status: 0))
            let id = child.identifier
            #expect(output.read() == "/usr\n/dev/null\n\(id)\n\(id)\n")
        }
    }

    @Test("with a missing working directory throws an error that names the directory")
    func missingDirectory() async throws {
        let loop = try EventLoop()
        let error = try #require(throws: SystemCallError.self) {
            _ = try ChildProcess(
                loop, ChildProcess.Command(path: "/bin/true", directory: "/nonexistent/place"), input: 0, output: 1,
                error: 2)
        }
        #expect(error.description == "chdir '/nonexistent/place': No such file or directory (ENOENT)")
    }

    @Test("is signalled as a group, together with the processes that it started")
    func group() async throws {
        try await withLoop { loop in
            let output = try Pipe()
            let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open")
            let child = try ChildProcess(
                loop,
                ChildProcess.Command(path: "/bin/sh", arguments: ["-c", "/bin/sleep 1000 & echo started; wait"]),
                input: null.rawValue, output: output.writing.rawValue, error: null.rawValue)
            let (events, continuation) = AsyncStream.makeStream(of: Void.self)
            let watch = try loop.watch(output.reading.rawValue, for: .read) { _ in
                if output.read() != "" { continuation.yield() }
            }
            for await _ in events { break }
            watch.cancel()
            child.signal(SIGKILL)
            #expect(await child.wait() == .signalled(SIGKILL))
            // The group is gone when none of its processes can be signalled. The kernel reaps them after a moment.
            #expect(await eventually { kill(-child.identifier, 0) == -1 })
        }
    }

    @Test("that was reaped is not signalled: its id may be that of another process or group")
    func reaped() async throws {
        try await withLoop { loop in
            let output = try Pipe()
            let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open")
            let child = try ChildProcess(
                loop, ChildProcess.Command(path: "/bin/sh", arguments: ["-c", "/bin/sleep 1000 & echo $!"]),
                input: null.rawValue, output: output.writing.rawValue, error: null.rawValue)
            #expect(await child.wait() == .exited(status: 0))
            let other = try #require(Int32(output.read().filter(\.isNumber)))
            defer { kill(other, SIGKILL) }
            child.signal(SIGSTOP)
            child.signal(SIGKILL)
            // A signal that was sent is pending or has acted now.
            let state = try String(decoding: TemporaryDirectory.read("/proc/\(other)/stat"), as: UTF8.self)
                .split(separator: " ").dropFirst(2).first
            #expect(state == "S" || state == "R" || state == "D")
        }
    }

    @Test("of a missing executable throws an error that names it")
    func missing() async throws {
        let loop = try EventLoop()
        let error = try #require(throws: SystemCallError.self) {
            _ = try ChildProcess(
                loop, ChildProcess.Command(path: "/nonexistent/command"), input: 0, output: 1, error: 2)
        }
        #expect(error.description == "execve '/nonexistent/command': No such file or directory (ENOENT)")
    }
}
