import FreshetEventLoop
import Glibc
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetVarlink

@Suite(.serialized, .hangLimit) struct ServerTests {
    @Test("a call is answered, and calls that arrive together are answered in their order")
    func answers() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            let reply = try client.call(#"{"method":"org.example.test.Echo","parameters":{"text":"a/ä"}}"#)
            #expect(reply == #"{"parameters":{"text":"a/ä"}}"#)
            let texts = (1...200).map(String.init)
            client.send(
                texts.map { #"{"method":"org.example.test.Echo","parameters":{"text":"\#($0)"}}"# + "\0" }.joined())
            for text in texts { #expect(try client.receive() == #"{"parameters":{"text":"\#(text)"}}"#) }
        }
    }

    @Test("calls of methods that do not wait, and of others, are answered in their order")
    func immediateAnswers() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            let info = #"{"method":"org.varlink.service.GetInfo"}"# + "\0"
            for number in 1...3 {
                client.send(info)
                #expect(try client.receive()?.contains("org.example.test") == true)
                client.send(
                    info + #"{"method":"org.example.test.Echo","parameters":{"text":"\#(number)"}}"# + "\0" + info)
                #expect(try client.receive()?.contains("org.example.test") == true)
                #expect(try client.receive() == #"{"parameters":{"text":"\#(number)"}}"#)
                #expect(try client.receive()?.contains("org.example.test") == true)
            }
            // An error, an oneway call, and the end of the client's side.
            #expect(
                try client.call(#"{"method":"org.varlink.service.GetInfo","parameters":{"text":"a"}}"#)
                    == #"{"error":"org.varlink.service.InvalidParameter","parameters":{"parameter":"text"}}"#)
            client.send(#"{"method":"org.varlink.service.GetInfo","oneway":true}"# + "\0" + info)
            #expect(try client.receive()?.contains("org.example.test") == true)
            client.send(info)
            client.closeSendingSide()
            #expect(try client.receive()?.contains("org.example.test") == true)
            #expect(try client.receive() == nil)
        }
    }

    @Test("a client that reads its replies late gets all of them, also of methods that do not wait")
    func lateReader() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            let info = #"{"method":"org.varlink.service.GetInfo"}"# + "\0"
            for _ in 0..<300 { client.send(info) }
            // The replies are longer than the kernel's buffer.
            #expect(eventually { harness.server.pendingOutputBytes > 0 })
            for _ in 0..<300 { #expect(try client.receive()?.contains("org.example.test") == true) }
            #expect(try client.call(#"{"method":"org.example.test.Note","parameters":{"text":"x"}}"#) != nil)
        }
    }

    @Test("a message that arrives byte by byte is answered")
    func drip() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            for byte in #"{"method":"org.example.test.Note","parameters":{"text":"drip"}}"#.utf8 { client.send([byte]) }
            #expect(harness.record["drip"] == 0)
            client.send([0])
            #expect(try client.receive() == #"{"parameters":{}}"#)
            #expect(harness.record["drip"] == 1)
        }
    }

    @Test(
        "a call that cannot be served is answered with the standard error",
        arguments: [
            (#"{"method":"Nothing"}"#, "InterfaceNotFound", #"{"interface":"Nothing"}"#),
            (#"{"method":"org.example.no.X"}"#, "InterfaceNotFound", #"{"interface":"org.example.no"}"#),
            (#"{"method":"org.example.test.X"}"#, "MethodNotFound", #"{"method":"org.example.test.X"}"#),
            (
                #"{"method":"org.example.test.Missing"}"#, "MethodNotImplemented",
                #"{"method":"org.example.test.Missing"}"#
            ),
            (#"{"method":"org.example.test.Echo"}"#, "InvalidParameter", #"{"parameter":"text"}"#),
            (
                #"{"method":"org.example.test.Note","parameters":{"text":"x","falg":true}}"#, "InvalidParameter",
                #"{"parameter":"falg"}"#
            ),
            (
                #"{"method":"org.example.test.Count","parameters":{"number":3}}"#, "ExpectedMore", "{}"
            ),
        ])
    func standardErrors(call: String, name: String, parameters: String) async throws {
        try await withServer { harness in
            let client = try harness.connect()
            #expect(try client.call(call) == #"{"error":"org.varlink.service.\#(name)","parameters":\#(parameters)}"#)
            #expect(try client.call(#"{"method":"org.example.test.Note","parameters":{"text":"on"}}"#) != nil)
        }
    }

    @Test("an error that the interface does not define is answered with systemd's general error")
    func unforeseen() async throws {
        try await withServer { harness in
            let reply = try harness.connect().call(#"{"method":"org.example.test.Break"}"#)
            #expect(reply?.hasPrefix(#"{"error":"io.systemd.System""#) == true)
        }
    }

    @Test("the service describes itself")
    func introspection() async throws {
        try await withServer { harness in
            struct Info: Decodable { var product: String, interfaces: [String] }
            struct Description: Decodable { var description: String }
            let client = try VarlinkClient(path: harness.path)
            let info = try client.call("org.varlink.service.GetInfo").decode(as: Info.self)
            #expect(info.product == "Test")
            #expect(info.interfaces == ["org.example.test", "org.varlink.service"])
            for name in info.interfaces {
                let text = try client.call(
                    "org.varlink.service.GetInterfaceDescription", VarlinkParameters(encoding: ["interface": name])
                ).decode(as: Description.self).description
                #expect(try InterfaceDescription(parsing: text).name == name)
            }
            #expect(throws: VarlinkClientError.refused(.interfaceNotFound("a.b"))) {
                try client.call(
                    "org.varlink.service.GetInterfaceDescription", VarlinkParameters(encoding: ["interface": "a.b"]))
            }
        }
    }

    @Test("a call with oneway and more is not served, and ends the connection")
    func contradiction() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            let flags = #""oneway":true,"more":true"#
            client.send(#"{"method":"org.example.test.Note","parameters":{"text":"received"},\#(flags)}"# + "\0")
            #expect(try client.receive() == nil)
            #expect(harness.record["received"] == 0)
        }
    }

    @Test("a oneway call gets no reply, not even an error")
    func oneway() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            client.send(#"{"method":"org.example.test.X","oneway":true}"# + "\0")
            client.send(#"{"method":"org.example.test.Note","parameters":{"text":"received"},"oneway":true}"# + "\0")
            #expect(
                try client.call(#"{"method":"org.example.test.Echo","parameters":{"text":"e"}}"#)?.contains("e") == true
            )
            #expect(harness.record["received"] == 1)
        }
    }

    @Test("a oneway call is served even if its client is gone")
    func onewayAndGone() async throws {
        try await withServer { harness in
            do {
                let client = try harness.connect()
                client.send(#"{"method":"org.example.test.Note","parameters":{"text":"gone"},"oneway":true}"# + "\0")
            }
            #expect(eventually { harness.record["gone"] == 1 })
        }
    }

    @Test("a call with more gets continued replies and a last reply")
    func more() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            client.send(#"{"method":"org.example.test.Count","parameters":{"number":3},"more":true}"# + "\0")
            #expect(try client.receive() == #"{"parameters":{"number":1},"continues":true}"#)
            #expect(try client.receive() == #"{"parameters":{"number":2},"continues":true}"#)
            #expect(try client.receive() == #"{"parameters":{"number":3}}"#)
            #expect(try client.call(#"{"method":"org.example.test.Note","parameters":{"text":"x"}}"#) != nil)
        }
    }

    @Test("a slow reader slows down its own handler, and other clients are served")
    func slowReader() async throws {
        try await withServer { harness in
            let slow = try harness.connect()
            slow.send(#"{"method":"org.example.test.Flood","more":true}"# + "\0")
            // The handler has stopped if it sends nothing during a hundred calls of another client.
            let other = try harness.connect()
            var last = -1
            #expect(
                eventually {
                    let before = harness.record["flood sent"]
                    for _ in 0..<100 {
                        _ = try? other.call(#"{"method":"org.example.test.Echo","parameters":{"text":"e"}}"#)
                    }
                    last = harness.record["flood sent"]
                    return before == last && last > 0
                })
            // The kernel's buffer and one reply; the server has no unbounded queue.
            #expect(last < 1_000)
            for _ in 0..<last + 10 { #expect(try slow.receive()?.contains("continues") == true) }
            #expect(eventually { harness.record["flood sent"] > last })
        }
    }

    @Test("a client that goes away cancels its handler")
    func goesAway() async throws {
        try await withServer { harness in
            var client: RawClient? = try harness.connect()
            client?.send(#"{"method":"org.example.test.Wait"}"# + "\0")
            #expect(eventually { harness.record["waiting"] == 1 })
            #expect(harness.record["wait ended"] == 0)
            client = nil
            #expect(eventually { harness.record["wait ended"] == 1 && harness.server.clientCount == 0 })

            client = try harness.connect()
            client?.send(#"{"method":"org.example.test.Flood","more":true}"# + "\0")
            #expect(eventually { harness.record["flood sent"] > 2 })
            client = nil
            #expect(eventually { harness.record["flood ended"] == 1 && harness.server.clientCount == 0 })
        }
    }

    @Test("a client that closed its sending side still gets replies, and the server still detects when it goes away")
    func halfOpen() async throws {
        try await withServer { harness in
            let client = try harness.connect()
            client.send(#"{"method":"org.example.test.Echo","parameters":{"text":"1"}}"# + "\0")
            client.send(#"{"method":"org.example.test.Echo","parameters":{"text":"2"}}"# + "\0{\"half")
            client.closeSendingSide()
            #expect(try client.receive()?.contains("1") == true)
            #expect(try client.receive()?.contains("2") == true)
            #expect(try client.receive() == nil)

            var waiting: RawClient? = try harness.connect()
            waiting?.send(#"{"method":"org.example.test.Wait"}"# + "\0")
            waiting?.closeSendingSide()
            #expect(eventually { harness.record["waiting"] == 1 })
            waiting = nil
            #expect(eventually { harness.record["wait ended"] == 1 })
        }
    }

    @Test("the server closes the connection of a client that violates the protocol, after answering its earlier calls")
    func garbage() async throws {
        try await withServer { harness in
            let note = #"{"method":"org.example.test.Note","parameters":{"text":"n"}}"# + "\0"
            for bytes in [Array("hello\0".utf8), [UInt8](repeating: 0, count: 100_000), [0xFF, 0xFE, 0]] {
                let client = try harness.connect()
                client.send(Array(note.utf8) + bytes)
                #expect(try client.receive() == #"{"parameters":{}}"#)
                #expect(try client.receive() == nil)
            }
            #expect(eventually { harness.server.clientCount == 0 })
        }
    }

    @Test("a message at the limit is answered; a longer message closes the connection")
    func messageLimit() async throws {
        var limits = VarlinkServer.Limits()
        limits.messageBytes = 1_000
        try await withServer(limits: limits) { harness in
            let call = #"{"method":"org.example.test.Note","parameters":{"text":"n"}}"#
            let space = String(repeating: " ", count: 1_000 - call.utf8.count)
            #expect(try harness.connect().call(call + space) == #"{"parameters":{}}"#)
            #expect(try harness.connect().call(call + space + " ") == nil)
            let endless = try harness.connect()
            endless.send([UInt8](repeating: 0x20, count: 10_000))
            #expect(try endless.receive() == nil)
        }
    }

    /// Limits for this number of clients, also if root runs the test.
    private func testLimits(for clients: Int) -> VarlinkServer.Limits {
        var limits = VarlinkServer.Limits()
        limits.clients = clients
        limits.clientsPerUser = clients
        limits.clientsKeptForPrivileged = 0
        limits.clientsKeptForRoot = 0
        return limits
    }

    private let note = #"{"method":"org.example.test.Note","parameters":{"text":"n"}}"#
    private let wait = #"{"method":"org.example.test.Wait"}"# + "\0"

    @Test("when all clients have a call in progress, a further client is turned away until another one leaves")
    func clientLimit() async throws {
        try await withServer(limits: testLimits(for: 12)) { harness in
            var clients: [RawClient] = []
            for _ in 0..<12 {
                let client = try harness.connect()
                client.send(wait)
                clients.append(client)
            }
            #expect(eventually { harness.record["waiting"] == 12 })
            #expect(try harness.connect().call(note) == nil)
            clients.removeLast()
            #expect(eventually { harness.server.clientCount == 11 })
            #expect(try harness.connect().call(note) != nil)
        }
    }

    @Test("when no connection is free, the longest silent client gives way, and no client with a call in progress")
    func givingWay() async throws {
        try await withServer(limits: testLimits(for: 4)) { harness in
            let busy = try harness.connect()
            busy.send(wait)
            #expect(eventually { harness.record["waiting"] == 1 })
            let silent = try (0..<3).map { _ in
                let client = try harness.connect()
                #expect(try client.call(note) != nil)
                return client
            }
            // The first client has made a call since then.
            #expect(try silent[0].call(note) != nil)
            let newcomer = try harness.connect()
            #expect(try newcomer.call(note) != nil)
            #expect(try silent[1].receive() == nil)
            #expect(try silent[0].call(note) != nil)
            #expect(try silent[2].call(note) != nil)
            #expect(harness.record["wait ended"] == 0)
            #expect(eventually { harness.server.clientCount == 4 })
        }
    }

    @Test("a client that does not read its replies gives way like a client that makes no calls")
    func givingWayUnread() async throws {
        try await withServer(limits: testLimits(for: 1)) { harness in
            let unread = try harness.connect()
            unread.send(#"{"method":"org.example.test.Flood","more":true}"# + "\0")
            // Until the server reads its call, the client counts as one without a call.
            #expect(eventually { harness.record["flood sent"] > 0 })
            // Until the flood stalls, the server does not wait for this client.
            #expect(eventually { (try? harness.connect().call(note)) != nil })
            #expect(eventually { harness.record["flood ended"] == 1 })
        }
    }

    @Test("the last client of a crowd that arrives together is served")
    func crowdTogether() async throws {
        try await withServer(limits: testLimits(for: 4)) { harness in
            let (begun, release) = (Latch(), Latch())
            harness.loop.perform {
                begun.open()
                _ = release.wait(for: testTimeout)
            }
            #expect(begun.wait(for: testTimeout))
            // The server accepts all of them before it looks at any.
            let crowd = try (0..<6).map { _ in try harness.connect() }
            release.open()
            #expect(try crowd[5].call(note) != nil)
            withExtendedLifetime(crowd) {}
        }
    }

    @Test("a newcomer without a descriptor waits for that of a client which gave way and has not ended")
    func waitingForDescriptor() async throws {
        let acceptClient = { @Sendable (descriptor: Int32, record: Record) -> Int32 in
            guard record["no descriptor"] > 0, record["may leave"] == 0 else { return accept(descriptor, nil, nil) }
            record.add("failed")
            errno = EMFILE
            return -1
        }
        try await withServer(limits: testLimits(for: 1), acceptClient: acceptClient) { harness in
            let former = try harness.begin(#"{"method":"org.example.test.Stay"}"#, until: "staying")
            #expect(try harness.connect().call(note) != nil)
            harness.record.add("no descriptor")
            let newcomer = try harness.connect()
            newcomer.send(note + "\0")
            #expect(eventually { harness.record["failed"] > 0 })
            harness.record.add("may leave")
            #expect(try newcomer.receive() == #"{"parameters":{}}"#)
            withExtendedLifetime(former) {}
        }
    }

    @Test("with any number of silent connections, the next client is served, and the limit holds")
    func crowd() async throws {
        let limits = testLimits(for: VarlinkServer.Limits().clients)
        try await withServer(limits: limits) { harness in
            let crowd = try (0..<300).map { _ in try harness.connect() }
            let newcomer = try harness.connect()
            #expect(try newcomer.call(note) != nil)
            #expect(harness.server.clientCount == 256)
            withExtendedLifetime((crowd, newcomer)) {}
        }
    }

    @Test("the 256th client does not make another give way, the 257th does")
    func defaultLimit() async throws {
        let limits = testLimits(for: VarlinkServer.Limits().clients)
        try await withServer(limits: limits) { harness in
            let clients = try (0..<256).map { _ in
                let client = try harness.connect()
                #expect(try client.call(note) != nil)
                return client
            }
            #expect(harness.server.clientCount == 256)
            for client in clients { #expect(try client.call(note) != nil) }
            #expect(try harness.connect().call(note) != nil)
            #expect(try clients[0].receive() == nil)
        }
    }

    @Test("a follower of events gives way to the same user's next client, but a client with a working call does not")
    func givingWayFollower() async throws {
        try await withServer(limits: testLimits(for: 3)) { harness in
            let busy = try harness.connect()
            busy.send(wait)
            #expect(eventually { harness.record["waiting"] == 1 })
            let followers = try (1...2).map { count in
                let follower = try harness.connect()
                follower.send(#"{"method":"org.example.test.Follow","more":true}"# + "\0")
                #expect(try follower.receive()?.contains("continues") == true)
                #expect(eventually { harness.record["following"] == count })
                return follower
            }
            #expect(try harness.connect().call(note) != nil)
            #expect(try followers[0].receive() == nil)
            #expect(harness.record["follow ended"] == 1 && harness.record["wait ended"] == 0)
            withExtendedLifetime(followers) {}
        }
    }

    @Test("all unread replies together are bounded, and the connections that waited longest are closed")
    func pendingOutput() async throws {
        var limits = testLimits(for: 32)
        let most = 20 << 20
        limits.pendingOutputBytes = most
        // Otherwise the connections would be closed because their clients are silent.
        limits.silence = .seconds(3_600)
        try await withServer(limits: limits) { harness in
            let unread = try (0..<8).map { _ in
                let client = try harness.connect()
                client.send(#"{"method":"org.example.test.Huge"}"# + "\0")
                return client
            }
            #expect(eventually { harness.record["huge"] == 8 })
            #expect(eventually { harness.server.clientCount == 2 })
            #expect(harness.server.pendingOutputBytes <= most)
            // A single client may have one long reply.
            #expect(try unread.last?.receive()?.utf8.count ?? 0 > 8 << 20)
        }
    }

    @Test("unread replies of privileged clients do not close their connections early")
    func privilegedPendingOutput() async throws {
        var limits = testLimits(for: 32)
        limits.pendingOutputBytes = 1
        try await withServer(limits: limits, rank: .privileged) { harness in
            let unread = try (0..<3).map { _ in
                let client = try harness.connect()
                client.send(#"{"method":"org.example.test.Huge"}"# + "\0")
                return client
            }
            #expect(eventually { harness.record["huge"] == 3 && harness.server.pendingOutputBytes > 3 * (7 << 20) })
            for client in unread { #expect(try client.receive()?.utf8.count ?? 0 > 8 << 20) }
        }
    }

    @Test("a client that does not read costs one reply and the kernel's buffer, however long its stream is")
    func unreadStreams() async throws {
        try await withServer(limits: testLimits(for: 32)) { harness in
            let clients = try (0..<20).map { _ in
                let client = try harness.connect()
                client.send(#"{"method":"org.example.test.Flood","more":true}"# + "\0")
                return client
            }
            var before = -1
            #expect(
                eventually {
                    defer { before = harness.record["flood sent"] }
                    for _ in 0..<100 { _ = try? harness.connect().call(note) }
                    return harness.record["flood sent"] == before && before >= 20
                })
            // A reply has 10,000 bytes. The kernel also counts its own structures.
            #expect(before <= 20 * 2 * Int(VarlinkConnection.sendBuffer) / 10_000)
            #expect(harness.server.pendingOutputBytes <= 20 * 10_100)
            withExtendedLifetime(clients) {}
        }
    }

    @Test("an unread reply is not kept for ever, also in the middle of a stream")
    func unreadReply() async throws {
        var limits = VarlinkServer.Limits()
        limits.silence = .milliseconds(20)
        try await withServer(limits: limits) { harness in
            let unread = try harness.begin(#"{"method":"org.example.test.Huge"}"#, until: "huge")
            let stream = try harness.begin(#"{"method":"org.example.test.Flood","more":true}"#, until: "flood sent")
            let follower = try harness.begin(#"{"method":"org.example.test.Follow","more":true}"#, until: "following")
            #expect(eventually { harness.record["flood ended"] == 1 && harness.server.clientCount == 1 })
            // In a stream without events there is nothing to read.
            #expect(harness.record["follow ended"] == 0)
            withExtendedLifetime((unread, stream, follower)) {}
        }
    }

    @Test("the server closes the connection of a silent client, but not of a client with a call in progress")
    func silence() async throws {
        var limits = VarlinkServer.Limits()
        limits.silence = .milliseconds(20)
        try await withServer(limits: limits) { harness in
            let waiting = try harness.begin(#"{"method":"org.example.test.Wait"}"#, until: "waiting")
            let silent = try harness.connect()
            #expect(try silent.receive() == nil)
            let half = try harness.connect()
            half.send("{\"method")
            #expect(try half.receive() == nil)
            #expect(harness.record["wait ended"] == 0)
            #expect(eventually { harness.server.clientCount == 1 })
            withExtendedLifetime(waiting) {}
        }
    }

    @Test("another socket replaces a socket whose name was removed, and connections stay open")
    func change() async throws {
        try await withServer { harness in
            let call = #"{"method":"org.example.test.Echo","parameters":{"text":"a"}}"#
            let before = try harness.connect()
            #expect(try before.call(call)?.contains(#""a""#) == true)
            unlink(harness.path)
            try harness.server.change(to: VarlinkListener(path: harness.path))
            for client in [try harness.connect(), before] {
                #expect(try client.call(call)?.contains(#""a""#) == true)
            }
        }
    }

    @Test("a client that connected just before its socket was replaced is answered")
    func replacedUnderClients() async throws {
        _ = try await withServer { harness in
            for number in 1...50 {
                let client = try VarlinkClient(path: harness.path)
                unlink(harness.path)
                // The server's thread has often not accepted the client by now.
                try harness.server.change(to: VarlinkListener(path: harness.path))
                let reply = try client.call(
                    "org.example.test.Echo", VarlinkParameters(encoding: Text(text: "\(number)")))
                #expect(try reply.decode(as: Text.self).text == "\(number)")
            }
        }
    }

    @Test("a client that connected before the server runs is answered, also if its socket was replaced")
    func replacedBeforeRunning() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("org.example.test")
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let server = try VarlinkServer(
            loop, try VarlinkListener(path: path), identity: identity, interfaces: [testInterface(Record())],
            limits: VarlinkServer.Limits(), rank: { _ in .unprivileged })
        let (start, starter) = AsyncStream.makeStream(of: Void.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: loop) {
                for await _ in start {}
                try await server.run()
            }
            let replies = await onThread {
                var clients = [try RawClient(path: path)]
                for _ in 1...3 {
                    unlink(path)
                    try server.change(to: VarlinkListener(path: path))
                    clients.append(try RawClient(path: path))
                }
                starter.finish()
                return try clients.map { try $0.call(note) }
            }
            group.cancelAll()
            try await group.waitForAll()
            #expect(try replies.get() == Array(repeating: #"{"parameters":{}}"#, count: 4))
        }
    }

    @Test("a client is answered if its socket is replaced while the server begins to run")
    func replacedAtStart() async throws {
        for _ in 1...50 {
            _ = try await withServer { harness in
                let clients = try (1...2).map { _ in
                    let client = try harness.connect()
                    unlink(harness.path)
                    try harness.server.change(to: VarlinkListener(path: harness.path))
                    return client
                }
                for client in clients + [try harness.connect()] { #expect(try client.call(note) != nil) }
            }
        }
    }

    @Test("stopping ends handlers and connections")
    func stopping() async throws {
        let record = try await withServer { harness in
            let client = try harness.connect()
            client.send(#"{"method":"org.example.test.Wait"}"# + "\0")
            #expect(eventually { harness.record["waiting"] == 1 })
            #expect(harness.record["wait ended"] == 0)
        }
        #expect(record["wait ended"] == 1)
    }

    @Test("the kernel's credentials identify the peer")
    func credentials() async throws {
        try await withServer { harness in
            let reply = try harness.connect().call(#"{"method":"org.example.test.Who"}"#)
            #expect(reply == #"{"parameters":{"number":\#(getpid())}}"#)
        }
    }
}

@Suite struct PeerTests {
    @Test("user, group and supplementary groups are this process's own")
    func ownCredentials() throws {
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let owned = pair.map { OwnedDescriptor($0) }
        let peer = try #require(VarlinkPeer(of: owned[0].rawValue))
        #expect(peer.user == geteuid() && peer.group == getegid() && peer.processIdentifier == getpid())
        var groups = [gid_t](repeating: 0, count: 65_536)
        let count = getgroups(Int32(groups.count), &groups)
        #expect(peer.supplementaryGroups.sorted() == groups.prefix(Int(count)).sorted())
        #expect(peer.isMember(of: getegid()))
        #expect(!peer.isMember(of: 4_000_000_000))
        var pipes: [Int32] = [0, 0]
        try #require(pipe(&pipes) == 0)
        #expect(VarlinkPeer(of: pipes[0]) == nil)
        for descriptor in pipes { close(descriptor) }
    }
}
