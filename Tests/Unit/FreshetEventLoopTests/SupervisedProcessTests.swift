import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@Suite("A child process whose descendants end with it", .hangLimit)
struct SupervisedProcessTests {
    /// Starts processes that leave the child's group and session, each the child of a process that has ended; prints
    /// their ids, and continues with `end`.
    private static func script(_ count: Int, end: String) -> String {
        """
        for n in $(seq \(count)); do (setsid sh -c '(sleep 1000 & echo $!)') & done
        wait
        echo done
        \(end)
        """
    }

    private struct Started {
        var child: ChildProcess
        var output: Pipe
    }

    private func start(_ script: String, on loop: EventLoop) throws -> Started {
        let output = try Pipe()
        let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open")
        let child = try ChildProcess(
            loop,
            ChildProcess.Command(
                path: "/bin/sh", arguments: ["-c", script], environment: ["PATH": "/usr/bin:/bin"]),
            input: null.rawValue, output: output.writing.rawValue, error: null.rawValue, endsDescendants: true)
        return Started(child: child, output: output)
    }

    /// The process ids that a script has printed before `done`.
    private func descendants(_ output: Pipe) async throws -> [Int32] {
        var text = ""
        #expect(
            await eventually {
                var bytes = [UInt8](repeating: 0, count: 4_096)
                var ready = pollfd(fd: output.reading.rawValue, events: Int16(POLLIN), revents: 0)
                if poll(&ready, 1, 0) > 0 {
                    let count = read(output.reading.rawValue, &bytes, bytes.count)
                    text += String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
                }
                return text.contains("done")
            })
        return text.split(separator: "\n").compactMap { Int32($0) }
    }

    private func isAlive(_ process: Int32) -> Bool { kill(process, 0) == 0 }

    @Test("leaves no descendants behind when it ends, whatever session they are in")
    func ends() async throws {
        try await withLoop { loop in
            let started = try start(Self.script(20, end: "exit 3"), on: loop)
            #expect(await started.child.wait() == .exited(status: 3))
            let processes = try await descendants(started.output)
            #expect(processes.count == 20 && !processes.contains(where: isAlive))
        }
    }

    @Test("leaves no descendants behind when it is killed")
    func killed() async throws {
        try await withLoop { loop in
            let started = try start(Self.script(5, end: "sleep 1000"), on: loop)
            let processes = try await descendants(started.output)
            #expect(processes.count == 5 && processes.allSatisfy(isAlive))
            started.child.signal(SIGKILL)
            #expect(await started.child.wait() == .signalled(SIGKILL))
            #expect(!processes.contains(where: isAlive))
        }
    }

    @Test("gets signals as a group, and decides itself how to handle them")
    func signalled() async throws {
        try await withLoop { loop in
            let started = try start("trap 'exit 9' TERM; echo done; while :; do sleep 0.01; done", on: loop)
            _ = try await descendants(started.output)
            started.child.signal(SIGTERM)
            #expect(await started.child.wait() == .exited(status: 9))
        }
    }

    @Test("reports how it ended, also if the supervisor was killed")
    func supervisorKilled() async throws {
        try await withLoop { loop in
            let started = try start("echo $$; echo done; sleep 1000", on: loop)
            let program = try #require(try await descendants(started.output).first)
            kill(started.child.identifier, SIGKILL)
            #expect(await started.child.wait() == .signalled(SIGKILL))
            kill(program, SIGKILL)
        }
    }

    @Test("can be killed although it has stopped the supervisor")
    func supervisorStopped() async throws {
        try await withLoop { loop in
            let started = try start("kill -STOP $PPID; echo $$; echo done; exec sleep 1000", on: loop)
            let program = try #require(try await descendants(started.output).first)
            started.child.signal(SIGKILL)
            #expect(await started.child.wait() == .signalled(SIGKILL))
            #expect(!isAlive(program))
        }
    }

    @Test("can be killed although it stops the supervisor repeatedly")
    func supervisorStoppedForEver() async throws {
        try await withLoop { loop in
            let started = try start(
                "for n in 1 2 3 4; do (setsid sh -c 'while kill -STOP '$PPID'; do :; done' &); done; echo done; sleep 1000",
                on: loop)
            _ = try await descendants(started.output)
            let child = started.child
            #expect(
                await eventually {
                    child.signal(SIGKILL)
                    return child.result == .signalled(SIGKILL)
                })
        }
    }

    @Test("of a missing executable throws an error that names it, and leaves no process")
    func missing() async throws {
        try await withLoop { loop in
            let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open")
            for _ in 0..<50 {
                let error = #expect(throws: SystemCallError.self) {
                    try ChildProcess(
                        loop, ChildProcess.Command(path: "/none/such"), input: null.rawValue, output: null.rawValue,
                        error: null.rawValue, endsDescendants: true)
                }
                #expect(error?.errno == ENOENT && error?.subject == "/none/such")
            }
        }
    }

    @Test("can run many times in parallel, each with its own result")
    func many() async throws {
        try await withLoop { loop in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<100 {
                    let started = try start("(setsid sleep 1000 &); exit \(number)", on: loop)
                    group.addTask { await started.child.wait() == .exited(status: Int32(number)) }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }
}
