import FreshetEventLoop

/// The executor of the ``SessionMachine``: all of it runs on the loop's thread.
extension NATSClient {
    // MARK: The machine's actions

    func perform(_ action: SessionMachine.Action) {
        switch action {
        case .none: break
        case .connect(let server): connect(to: configuration.servers[server])
        case .authenticate: authenticate()
        case .establish:
            transmit(
                ClientOperation.subscribe(NATSSubjectPattern(trusted: "\(inbox)*"), number: Self.inboxNumber)
                    + subscriptions.resubscribe())
        case .ping:
            transmit(ClientOperation.ping)
            // Sending may have ended the connection.
            if machine.isConnected { pongs.append(nil) }
        case .close: drop(.connectionLost)
        }
    }

    /// Publishes a change of the state, and arms the timer for the next deadline. To be called after each event.
    func settle() {
        let state = machine.state
        if state != lastState {
            lastState = state
            publishEvent.yield(.state(state))
        }
        let deadline = [machine.deadline, requests.deadline].compactMap(\.self).min()
        guard deadline != armed else { return }
        armed = deadline
        if let deadline { timer?.arm(at: deadline) } else { timer?.disarm() }
    }

    func timeIsUp() {
        armed = nil
        let now = ContinuousClock.Instant.now
        for waiter in requests.expire(at: now) { waiter.resume(returning: .failure(.timedOut)) }
        perform(machine.tick(at: now, fraction: fraction()))
        settle()
    }

    private func connect(to address: NATSServerAddress) {
        let now = ContinuousClock.Instant.now
        abandonedLookups.removeAll { $0 <= now }
        guard abandonedLookups.count < Self.mostAbandonedLookups else {
            return fail(
                .connectionFailed(
                    host: address.description,
                    reason: "the resolver has not answered, and \(abandonedLookups.count) lookups are still waiting"))
        }
        serial += 1
        let present = serial
        let connection = NATSConnection(
            loop, to: address, configuration.connection, outgoingLimit: configuration.limits.outgoing
        ) { [weak self] event in
            self?.assumeIsolated { $0.received(event, on: present) }
        }
        guard let connection else {
            return fail(.connectionFailed(host: address.description, reason: CurlHandles.missingReason))
        }
        self.connection = connection
        do throws(NATSError) {
            try connection.start()
        } catch {
            fail(error)
        }
    }

    private func authenticate() {
        guard let server = machine.server else { return }
        let address = configuration.servers[server]
        var proof: (publicKey: String, signature: String)?
        // Without a nonce, the server asks for no signature.
        if let credential = configuration.credential, let nonce = machine.info.nonce {
            guard let signature = credential.signature(ofNonce: nonce) else {
                return fail(
                    .violation(
                        host: address.description,
                        "its nonce has other characters than Base64, or libcrypto does not provide Ed25519"))
            }
            proof = (credential.publicKey, NKeyText.base64(signature))
        }
        let connect = ClientOperation.Connect(
            name: configuration.name, version: Self.version, proof: proof, usesTLS: address.usesTLS)
        transmit(connect.line + ClientOperation.ping)
    }

    // MARK: The connection

    private func received(_ event: NATSConnection.Event, on present: UInt64) {
        guard let connection, present == serial else { return }
        switch connection.handle(event) {
        case .nothing: break
        case .connected:
            perform(machine.connected(at: .now))
            // TLS may have received INFO with the end of its handshake.
            read(connection)
        case .readable: read(connection)
        case .failed(let error): fail(error)
        }
        settle()
    }

    /// Processes what arrived, up to a limit; then other work has its turn.
    private func read(_ connection: NATSConnection) {
        let present = serial
        machine.received(at: .now)
        do throws(NATSError) {
            for _ in 0..<Self.piecesPerTurn {
                let mayHaveMore = try connection.receive { parser.append($0) }
                try processOperations()
                // An operation may have ended the connection.
                guard self.connection === connection else { return }
                guard mayHaveMore else { return }
            }
        } catch {
            return fail(error)
        }
        // The socket may be empty although TLS has more, so the loop would not report it. One such read at a time: the
        // loop reports a socket that is not empty too, and each report would plan another one.
        guard planned.read != present else { return }
        planned.read = present
        loop.perform(named: "NATS") { [weak self] in
            self?.assumeIsolated { client in
                if client.planned.read == present { client.planned.read = nil }
                client.received(.ready(.read), on: present)
            }
        }
    }

    private func processOperations() throws(NATSError) {
        while connection != nil {
            let operation: ServerOperation?
            do throws(NATSParser.Violation) {
                operation = try parser.next()
            } catch {
                throw .violation(
                    host: machine.server.map { configuration.servers[$0].description } ?? "", error.description)
            }
            guard let operation else { return }
            process(operation)
        }
    }

    private func process(_ operation: ServerOperation) {
        switch operation {
        case .message(let message, let number):
            if number == Self.inboxNumber { return receivedReply(message) }
            subscriptions.buffer(of: number)?.add(message)
        case .unusable(let subject, let number):
            if number == Self.inboxNumber, let token = token(of: subject) {
                return requests.skipsUnusable(token) ? () : end(token, .failure(.replyUnusable))
            }
            subscriptions.buffer(of: number)?.drop()
        case .ping: transmit(ClientOperation.pong)
        case .pong: receivedPong()
        case .ok: break
        case .info(let info):
            let usesTLS = machine.server.map { configuration.servers[$0].usesTLS } ?? false
            perform(machine.received(info, usesTLS: usesTLS, at: .now, fraction: fraction()))
        case .error(let text): received(error: text)
        }
    }

    private func receivedReply(_ message: NATSMessage) {
        guard let token = token(of: message.subject) else { return }
        // Before the table is changed: the caller's function may use this client.
        let isLast = requests.function(for: message, token)?(message) ?? false
        guard let (waiter, outcome) = requests.received(message, for: token, isLast: isLast, at: .now) else { return }
        waiter.resume(returning: outcome)
    }

    /// The token at the end of a subject for replies.
    private func token(of subject: String) -> UInt64? {
        guard subject.utf8.starts(with: inbox.utf8) else { return nil }
        let token = subject.utf8.dropFirst(inbox.utf8.count)
        return token.count <= 20 ? UInt64(String(decoding: token, as: UTF8.self)) : nil
    }

    private func receivedPong() {
        if machine.isConnected, !pongs.isEmpty {
            if let token = pongs.removeFirst() { end(token, .success([])) }
            return
        }
        perform(machine.receivedPong(at: .now))
    }

    private func received(error raw: String) {
        let text = Text.escaped(raw)
        let violation = PermissionViolation(raw)
        // A missing right ends no connection, so it does not explain the end of one.
        if violation == nil { machine.received(error: text, at: .now) }
        guard machine.isConnected else { return }
        publishEvent.yield(.serverError(text))
        guard let violation else { return }
        switch violation {
        case .publish(let subject):
            for waiter in requests.remove(to: subject) { waiter.resume(returning: .failure(.notPermitted(text))) }
        case .subscribe(let pattern) where pattern == inbox + "*":
            for waiter in requests.refuse(.notPermitted(text)) {
                waiter.resume(returning: .failure(.notPermitted(text)))
            }
        case .subscribe(let pattern):
            for buffer in subscriptions.remove(pattern: pattern) { buffer.finish(.failure(.notPermitted(text))) }
        }
    }

    /// Ends a request, unless it has ended.
    func end(_ token: UInt64, _ outcome: RequestOutcome) {
        guard let (waiter, outcome) = requests.end(token, outcome) else { return }
        waiter.resume(returning: outcome)
        settle()
    }

    // MARK: Sending

    /// Sends bytes of the protocol itself: they are few, and a buffer that is full of them means that the server reads
    /// nothing.
    func transmit(_ bytes: [UInt8]) {
        guard let connection else { return }
        guard connection.canSend(bytes.count) else {
            return fail(.outgoingBufferFull(limit: configuration.limits.outgoing))
        }
        connection.send(bytes)
        planFlush()
    }

    /// Sends what waits in the loop's next round, together.
    func planFlush() {
        guard !planned.isFlush else { return }
        planned.isFlush = true
        loop.perform(named: "NATS") { [weak self] in
            self?.assumeIsolated { client in
                client.planned.isFlush = false
                guard let error = client.connection?.flush() else { return }
                client.fail(error)
            }
        }
    }

    // MARK: The end

    /// The connection, or an attempt, failed.
    func fail(_ error: NATSError) {
        perform(machine.ended(error, at: .now, fraction: fraction()))
        settle()
    }

    /// Closes the connection. Everything that waits for it fails.
    func drop(_ error: NATSError) {
        if connection?.waitsForLookup == true { abandonedLookups.append(.now + Self.lookupLifetime) }
        connection = nil
        serial += 1
        parser = NATSParser(limits: parser.limits)
        pongs = []
        requests.refusal = nil
        for waiter in requests.removeAll() { waiter.resume(returning: .failure(error)) }
    }
}

/// The subject of an error about a missing right: `Permissions Violation for Publish to "SUBJECT"`.
enum PermissionViolation: Hashable {
    case publish(String)
    case subscribe(String)

    init?(_ text: String) {
        guard let quote = text.utf8.firstIndex(of: UInt8(ascii: "\"")),
            let subject = Self.unquoted(text.utf8[text.utf8.index(after: quote)...])
        else { return nil }
        switch text[..<quote].lowercased() {
        case "permissions violation for publish to ": self = .publish(subject)
        case "permissions violation for subscription to ": self = .subscribe(subject)
        default: return nil
        }
    }

    /// The text up to the next quote. The server quotes as Go does (`%q`): `\"` and `\\` stand for `"` and `\`. A subject
    /// has no other characters that Go escapes.
    private static func unquoted(_ text: Substring.UTF8View) -> String? {
        var bytes: [UInt8] = []
        var isEscaped = false
        for byte in text {
            if isEscaped || (byte != UInt8(ascii: "\\") && byte != UInt8(ascii: "\"")) {
                bytes.append(byte)
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                return String(decoding: bytes, as: UTF8.self)
            } else {
                isEscaped = true
            }
        }
        return nil
    }
}

/// Work that the client has passed to the loop and that is not done yet.
struct PlannedWork {
    var isFlush = false
    /// The connection from which more is to be read.
    var read: UInt64?
}
