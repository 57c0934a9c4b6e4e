import CSystemd

extension BusLink {
    /// A method call.
    struct Request: Sendable {
        var destination: String
        var path: String
        var interface: String
        var member: String
        var arguments: [BusValue]
        var timeout: Duration
    }

    func call(_ request: Request, _ reply: @escaping @Sendable (Result<[BusValue], BusError>) -> Void) {
        checkThread()
        guard isReady else { return reply(.failure(.disconnected)) }
        guard foreignCalls < Self.maximumCalls else { return reply(.failure(.tooMany)) }
        send(request, isOwn: false, reply)
    }

    /// - Parameter isOwn: Whether this object made the call. Such calls are bounded by this object, and do not get an
    ///   error when the bus is lost.
    func send(_ request: Request, isOwn: Bool, _ reply: @escaping (Result<[BusValue], BusError>) -> Void) {
        guard let bus, let message = make(request, on: bus) else { return reply(.failure(.invalid)) }
        defer { sd_bus_message_unref(message) }
        nextCall += 1
        let call = PendingCall(nextCall, isOwn: isOwn, link: self, reply: reply)
        // At least one microsecond: zero would mean sd-bus's own timeout. At most one day.
        let timeout = max(.microseconds(1), min(request.timeout, .seconds(86_400))).components
        let microseconds = UInt64(timeout.seconds * 1_000_000 + timeout.attoseconds / 1_000_000_000_000)
        let sent = sd_bus_call_async(
            bus, &call.slot, message, Self.answered, Unmanaged.passUnretained(call).toOpaque(), microseconds)
        guard sent >= 0 else { return reply(.failure(.disconnected)) }
        calls[call.identifier] = call
        if !isOwn { foreignCalls += 1 }
    }

    private func make(_ request: Request, on bus: OpaquePointer) -> OpaquePointer? {
        var made: OpaquePointer?
        let result = sd_bus_message_new_method_call(
            bus, &made, request.destination, request.path, request.interface, request.member)
        guard result >= 0, let made else { return nil }
        guard sd_bus_message_set_auto_start(made, 0) >= 0, request.arguments.allSatisfy({ $0.append(to: made) }) else {
            sd_bus_message_unref(made)
            return nil
        }
        return made
    }

    /// A reply, an error or the timeout: it is only recorded here. The call lives as long as its slot.
    private static let answered: sd_bus_message_handler_t = { message, call, _ in
        guard let message, let call else { return 0 }
        let pending = Unmanaged<PendingCall>.fromOpaque(call).takeUnretainedValue()
        pending.link.arrivals.append(.reply(pending.identifier, read(message)))
        return 0
    }

    static func read(_ message: OpaquePointer) -> Result<[BusValue], BusError> {
        if let error = sd_bus_message_get_error(message)?.pointee, let name = error.name {
            return .failure(BusError(String(cString: name), error.message.map { String(cString: $0) } ?? ""))
        }
        var reader = BusValueReader(message)
        return reader.readAll().map { .success($0) } ?? .failure(.unreadable)
    }
}
