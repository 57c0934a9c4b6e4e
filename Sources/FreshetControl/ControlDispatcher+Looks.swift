import FreshetVarlink

/// The methods that look at many pipelines at once, and at what has happened; and those that hold and release.
extension ControlDispatcher {
    /// Events in one reply of `RecentEvents`: some tens of kilobytes.
    package static let eventsPerReply = 128

    /// The pipelines that are meant, or an error for a name that is none.
    func selection(_ names: [String]?) async throws(ControlError) -> PipelineSelection {
        let selection: PipelineSelection
        do throws(PipelineSelection.TooManyPatterns) {
            selection = try PipelineSelection(names)
        } catch {
            throw .invalidParameter("names")
        }
        if let exact = selection.exact { _ = try await existing(exact.sorted()) }
        return selection
    }

    /// The names of pipelines that are meant, each once and sorted.
    func fitting(_ names: [String]?, _ call: VarlinkCall) async throws(ControlError) -> [String] {
        let selection = try await selection(names)
        // Without a pattern only the named pipelines are looked at, however many others there are.
        if let names, !names.contains(where: GlobPattern.isPattern) { return Set(names).sorted() }
        var fitting: [String] = []
        for (index, name) in await service.pipelineNames().enumerated() {
            if index.isMultiple(of: Self.pipelinesPerReply) { await call.yield() }
            if selection.contains(name) { fitting.append(name) }
        }
        return fitting
    }

    func describe(_ call: VarlinkCall) async throws -> ControlMessage.Descriptions {
        let rest = try await stream(call, { await service.descriptions(of: $0) }, ControlMessage.Descriptions.init)
        return ControlMessage.Descriptions(pipelines: rest)
    }

    func metrics(_ call: VarlinkCall) async throws -> ControlMessage.Metrics {
        let rest = try await stream(call, { await service.counters(of: $0) }, ControlMessage.Metrics.init)
        return ControlMessage.Metrics(pipelines: rest)
    }

    /// Sends what there is to be said of the pipelines that are meant, but for the last part, which is returned.
    private func stream<Item: Sendable, Reply: Encodable>(
        _ call: VarlinkCall, _ some: (ArraySlice<String>) async -> [Item], _ reply: ([Item]) -> Reply
    ) async throws -> [Item] {
        guard call.wantsMore else { throw VarlinkErrorReply.expectedMore }
        let names = try await fitting(try call.parameters.decode(as: ControlMessage.Names.self).names, call)
        var items: [Item] = []
        var rest = names[...]
        while !rest.isEmpty {
            await call.yield()
            for item in await some(rest.prefix(Self.pipelinesPerLook)) {
                if items.count == Self.pipelinesPerReply {
                    try await call.send(VarlinkParameters(encoding: reply(items)))
                    items.removeAll(keepingCapacity: true)
                }
                items.append(item)
            }
            rest = rest.dropFirst(Self.pipelinesPerLook)
        }
        return items
    }

    func recentEvents(_ call: VarlinkCall) async throws -> ControlMessage.RecentEvents {
        guard call.wantsMore else { throw VarlinkErrorReply.expectedMore }
        let request = try call.parameters.decode(as: ControlMessage.Recent.self)
        let selection = try await selection(request.names)
        let recent = service.events.recent()
        // A daemon that has forgotten nothing knows all since it began.
        let began = await service.daemon().since
        let complete = recent.isWhole ? began : recent.events.first?.at ?? began
        let since = request.since ?? .min
        var isReadable: [String: Bool] = [:]
        var shown: [ControlEvent] = []
        for (index, event) in recent.events.enumerated() {
            if index.isMultiple(of: Self.eventsPerReply) { await call.yield() }
            guard event.at >= since, selection.contains(event.pipeline) else { continue }
            guard let name = event.pipeline else {
                shown.append(event)
                continue
            }
            let mayRead: Bool
            if let known = isReadable[name] {
                mayRead = known
            } else {
                mayRead = await service.mayRead(name, call.peer)
            }
            isReadable[name] = mayRead
            shown.append(mayRead ? event : event.withholdingContent())
        }
        var wanted = shown[...]
        while wanted.count > Self.eventsPerReply {
            await call.yield()
            let reply = ControlMessage.RecentEvents(
                events: Array(wanted.prefix(Self.eventsPerReply)), completeSince: complete)
            try await call.send(VarlinkParameters(encoding: reply))
            wanted = wanted.dropFirst(Self.eventsPerReply)
        }
        return ControlMessage.RecentEvents(events: Array(wanted), completeSince: complete)
    }

    func hold(_ call: VarlinkCall) async throws -> ControlMessage.Held { try await hold(call, true) }

    func release(_ call: VarlinkCall) async throws -> ControlMessage.Held { try await hold(call, false) }

    private func hold(_ call: VarlinkCall, _ isHeld: Bool) async throws -> ControlMessage.Held {
        let name = try call.parameters.decode(as: ControlMessage.Name.self).name
        _ = try await existing([name])
        return ControlMessage.Held(
            name: name, changed: try await service.hold(name, isHeld, asker: Self.asker(of: call)))
    }
}
