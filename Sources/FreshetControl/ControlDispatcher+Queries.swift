import FreshetVarlink

/// The methods that read many pipelines or recent events, and the methods that hold and release a pipeline.
extension ControlDispatcher {
    /// The most events in one reply of `RecentEvents`: some tens of kilobytes.
    package static let eventsPerReply = 128
    /// How many events are filtered before other clients get the loop.
    static let eventsPerPage = 32
    /// The most bytes of JSON in each of several replies, and so in the memory of the daemon for a client that does not
    /// read. A reply with a single pipeline or event may have more.
    package static let replyBytes = 65_536

    func describe(_ call: VarlinkCall) async throws -> VarlinkParameters {
        try await stream(call, { await services.pipelines.descriptions(of: $0) }, ControlMessage.Descriptions.init)
    }

    func metrics(_ call: VarlinkCall) async throws -> VarlinkParameters {
        try await stream(call, { await services.pipelines.counters(of: $0) }, ControlMessage.Metrics.init)
    }

    /// Sends these items in replies of at most ``replyBytes`` and returns the last reply without sending it.
    func sendAllButLast<Item, Reply: Encodable>(
        _ items: [Item], to call: VarlinkCall, _ reply: ([Item]) -> Reply
    ) async throws -> VarlinkParameters {
        var rest = items[...]
        while true {
            var count = rest.count
            var encoded = try VarlinkParameters(encoding: reply(Array(rest)))
            while encoded.json.count > Self.replyBytes, count > 1 {
                count /= 2
                await call.yield()
                encoded = try VarlinkParameters(encoding: reply(Array(rest.prefix(count))))
            }
            rest = rest.dropFirst(count)
            if rest.isEmpty { return encoded }
            try await call.send(consume encoded)
        }
    }

    /// Sends an item for each selected pipeline, in several replies, and returns the last reply without sending it.
    private func stream<Item: Sendable, Reply: Encodable>(
        _ call: VarlinkCall, _ some: (ArraySlice<String>) async -> [Item], _ reply: ([Item]) -> Reply
    ) async throws -> VarlinkParameters {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let names = try await pipelineNames.fitting(
            try call.parameters.decode(as: ControlMessage.Names.self).names, call)
        var items: [Item] = []
        var rest = names[...]
        while !rest.isEmpty {
            await call.yield()
            for item in await some(rest.prefix(Self.pipelinesPerQuery)) {
                if items.count == Self.pipelinesPerReply {
                    let encoded = try await sendAllButLast(items, to: call, reply)
                    // While the client does not read, the daemon keeps only the encoded bytes.
                    items = []
                    try await call.send(consume encoded)
                }
                items.append(item)
            }
            rest = rest.dropFirst(Self.pipelinesPerQuery)
        }
        return try await sendAllButLast(items, to: call, reply)
    }

    func recentEvents(_ call: VarlinkCall) async throws -> VarlinkParameters {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let request = try call.parameters.decode(as: ControlMessage.Recent.self)
        let selection = try await pipelineNames.selection(request.names)
        let remembered = services.daemon.events.remembered
        // If no event has been dropped, the events are complete since the daemon started.
        let began = await services.daemon.daemon().since
        var complete = remembered.isWhole ? began : remembered.oldest ?? began
        let since = request.since ?? .min
        func reply(_ events: [ControlEvent]) -> ControlMessage.RecentEvents {
            ControlMessage.RecentEvents(events: events, completeSince: complete)
        }
        var isReadable: [String: Bool] = [:]
        var selected: [ControlEvent] = []
        var number = remembered.numbers.lowerBound
        while number < remembered.numbers.upperBound {
            await call.yield()
            if selected.count + Self.eventsPerPage > Self.eventsPerReply {
                let encoded = try await sendAllButLast(selected, to: call, reply)
                // While the client does not read, the daemon keeps only the encoded bytes.
                (selected, isReadable) = ([], [:])
                try await call.send(consume encoded)
            }
            let limit = min(Self.eventsPerPage, remembered.numbers.upperBound - number)
            let page = services.daemon.events.page(from: number, limit: limit)
            // The client read so slowly that the next events have been dropped.
            if page.start > number, let first = page.events.first { complete = first.at }
            number = page.next
            for event in page.events where event.at >= since && selection.contains(event.pipeline) {
                guard let name = event.pipeline else {
                    selected.append(event)
                    continue
                }
                let mayRead: Bool
                if let known = isReadable[name] {
                    mayRead = known
                } else {
                    mayRead = await services.pipelines.mayRead(name, call.peer)
                }
                isReadable[name] = mayRead
                selected.append(mayRead ? event : event.withholdingContent())
            }
        }
        return try await sendAllButLast(selected, to: call, reply)
    }

    func hold(_ call: VarlinkCall) async throws -> ControlMessage.Held { try await hold(call, true) }

    func release(_ call: VarlinkCall) async throws -> ControlMessage.Held { try await hold(call, false) }

    private func hold(_ call: VarlinkCall, _ isHeld: Bool) async throws -> ControlMessage.Held {
        let name = try call.parameters.string("name")
        try await pipelineNames.requireExisting(name)
        return ControlMessage.Held(
            name: name, changed: try await services.pipelines.hold(name, isHeld, caller: call.caller))
    }
}
