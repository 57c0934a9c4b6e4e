import ArgumentParser
import FreshetControl
import FreshetRender

struct Top: Verb {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Show pipelines live on a terminal.",
        discussion: """
            Keys: q quits, s sorts by the next column, S reverses the order, / filters by name, r refreshes the \
            selected pipeline, Enter opens its page (status, last runs, difference of the content), q or Esc closes it, ? \
            shows all keys. At its end top restores the terminal; after SIGKILL, run 'reset'. Without a terminal, use \
            'freshetctl list'.

            Examples:
              freshetctl top
              freshetctl top 'feed-*'
            """)

    @Argument(help: "Pipelines, or patterns; without a name, all.") var names: [String] = []
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if options.json {
            throw ValidationError("top has no JSON output; 'freshetctl monitor --json' prints events.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let remedy = "'freshetctl list' prints the pipelines, 'freshetctl monitor' prints events"
        guard session.context.isTerminal, session.context.answer != nil else {
            throw CommandFailure(.failure, "top needs a terminal; \(remedy)")
        }
        guard let kind = session.context.environment["TERM"], !kind.isEmpty, kind != "dumb" else {
            throw CommandFailure(.failure, "top cannot draw on this terminal: $TERM is unset or 'dumb'; \(remedy)")
        }
        // Connects before it uses the screen: a failure is then an ordinary error message.
        var screen = TopScreen(names.isEmpty ? nil : names, session)
        try screen.connect()
        guard let terminal = FullScreen() else { throw CommandFailure(.failure, "top needs a terminal; \(remedy)") }
        terminal.enter()
        let end = screen.run(terminal)
        terminal.leave()
        if case .signal(let signal) = end {
            terminal.deliver(signal)
            throw CommandFailure(.failure)
        }
    }
}

/// The loop of `top`: sends requests to the daemon, draws, and handles keys and events.
private struct TopScreen {
    /// How a screen ends.
    enum End {
        case quit
        case signal(Int32)
    }

    /// Pipelines in one request: the daemon answers as many within a moment, between two keys.
    private static let page: Int64 = 500
    /// The interval of requests for all pipelines, if the order depends on all of them, in microseconds; events arrive
    /// in between.
    private static let wholeEvery: Int64 = 30_000_000
    /// The interval of requests for the visible pipelines while there are events, in microseconds.
    private static let visibleEvery: Int64 = 1_000_000
    /// The interval without events, in microseconds: it shows whether the daemon hangs.
    private static let restingEvery: Int64 = 5_000_000

    /// The longest time for the rest of an answer; keys and signals wait as long.
    private static let answerLimit: Duration = .seconds(2)

    /// A request without an answer yet. Keys, signals and the clock do not wait for it.
    private struct PendingRequest {
        enum Kind {
            /// The page of all pipelines after a name.
            case page(after: String?)
            /// The visible pipelines and the daemon; with no names, only the daemon.
            case visible([String])
        }

        var client: ControlClient
        var kind: Kind
        var at: Int64
    }

    private let names: [String]?
    private let session: Session
    private var model = TopModel()
    /// The connection for events; nil if the daemon has closed it.
    private var monitor: ControlClient?
    private var pending: PendingRequest?
    /// The connections of the requested runs.
    private var refreshes: [ControlClient] = []
    private var widths: [Int] = []
    /// The last name of the pages so far, while all pipelines are requested page by page.
    private var paging: (after: String?, isActive: Bool) = (nil, false)
    private var collected: [PipelineStatus] = []
    private var lastWhole: Int64 = 0
    private var lastVisible: Int64 = 0
    /// Whether there was an event after the last request for the visible pipelines.
    private var isDirty = true

    init(_ names: [String]?, _ session: Session) {
        self.names = names
        self.session = session
    }

    /// Connects, requests the first pipelines, and waits for them.
    mutating func connect() throws(CommandFailure) {
        do throws(ControlClient.Failure) {
            try begin(at: session.context.now())
            try takeAnswer()
        } catch {
            throw session.failure(error)
        }
    }

    mutating func run(_ terminal: FullScreen) -> End {
        fit(terminal)
        draw(terminal)
        while true {
            // The clock on the screen changes each second.
            let timeout = Int32(1_000 - session.context.now() / 1_000 % 1_000)
            let others = ([monitor, pending?.client].compactMap(\.self) + refreshes).map(\.rawDescriptor)
            switch terminal.next(beside: others, milliseconds: timeout) {
            case .keys(let keys):
                for key in keys {
                    switch model.press(key) {
                    case .quit: return .quit
                    case .refresh(let name): refresh(name)
                    case .redraw: terminal.clear()
                    case .none: break
                    }
                }
            case .changed:
                terminal.clear()
                widths = []
            case .others(let readable): take(readable)
            case .timeout: break
            case .ended(let signal): return .signal(signal)
            case .gone: return .quit
            }
            fit(terminal)
            sendDueRequests()
            loadDetails()
            if !draw(terminal) { return .quit }
        }
    }

    private mutating func fit(_ terminal: FullScreen) {
        let rows = max(1, terminal.size.rows - TopView.otherLines)
        if model.visibleRows != rows { model.visibleRows = rows }
    }

    @discardableResult
    private mutating func draw(_ terminal: FullScreen) -> Bool {
        let (columns, rows) = terminal.size
        model.hiddenDetailLines = TopView(model: model, times: session.times, palette: session.palette)
            .hiddenDetailLines(columns: columns, rows: rows)
        let view = TopView(model: model, times: session.times, palette: session.palette)
        return terminal.draw(view.lines(columns: columns, rows: rows, widths: &widths))
    }

    // MARK: The daemon

    /// Subscribes to events, and requests all pipelines.
    private mutating func begin(at now: Int64) throws(ControlClient.Failure) {
        let monitor = try ControlClient(path: session.socketPath)
        try monitor.beginMonitor(names)
        self.monitor = monitor
        beginWhole(at: now)
        try send(.page(after: nil), at: now)
    }

    private mutating func beginWhole(at now: Int64) {
        paging = (nil, true)
        collected = []
        lastWhole = now
        // A page of the previous series must not become a part of this one.
        if case .page? = pending?.kind { pending = nil }
    }

    /// Sends a request on a new connection: the daemon closes connections that are idle for a while.
    private mutating func send(_ kind: PendingRequest.Kind, at now: Int64) throws(ControlClient.Failure) {
        let client = try ControlClient(path: session.socketPath)
        client.replyTimeout = Self.answerLimit
        switch kind {
        case .page(let after): try client.beginStatus(ControlMessage.List(names: names, after: after, limit: Self.page))
        case .visible(let names): try client.beginStatus(names.isEmpty ? nil : ControlMessage.List(names: names))
        }
        pending = PendingRequest(client: client, kind: kind, at: now)
    }

    /// Sends the requests that are due; connects again if the daemon was gone.
    private mutating func sendDueRequests() {
        let now = session.context.now()
        if let pending { return model.updateSilence(since: pending.at, now: now) }
        do throws(ControlClient.Failure) {
            guard monitor != nil else {
                guard now - lastVisible >= Self.visibleEvery else { return }
                lastVisible = now
                return try begin(at: now)
            }
            if paging.isActive { return try send(.page(after: paging.after), at: now) }
            if model.order != .name, isDirty, now - lastWhole >= Self.wholeEvery { beginWhole(at: now) }
            let isBusy = isDirty || model.visible.contains { $0.state == .loading }
            guard now - lastVisible >= (isBusy ? Self.visibleEvery : Self.restingEvery) else { return }
            (lastVisible, isDirty) = (now, false)
            // There are no pipelines at all, filtered or not.
            if model.count == 0 { beginWhole(at: now) }
            try send(paging.isActive ? .page(after: nil) : .visible(model.visible.map(\.name)), at: now)
        } catch {
            disconnect(error)
        }
    }

    /// Handles the answers and events that have arrived.
    private mutating func take(_ readable: [Int32]) {
        for client in refreshes where readable.contains(client.rawDescriptor) { takeRefreshResult(client) }
        do throws(ControlClient.Failure) {
            if let monitor, readable.contains(monitor.rawDescriptor) { try takeEvents(monitor) }
            if let pending, readable.contains(pending.client.rawDescriptor) { try takeAnswer() }
        } catch {
            disconnect(error)
        }
    }

    private mutating func takeAnswer() throws(ControlClient.Failure) {
        guard let pending else { return }
        self.pending = nil
        let now = session.context.now()
        switch pending.kind {
        case .page:
            let (daemon, some) = try pending.client.takeStatus(hasPipelines: true)
            model.answered(daemon, at: now)
            collected += some
            // Each page is shown immediately.
            model.merge(some)
            if some.count < Int(Self.page) {
                model.replace(with: collected)
                (paging, collected) = ((nil, false), [])
            } else {
                paging.after = some.last?.name
            }
        case .visible(let names):
            do throws(ControlClient.Failure) {
                let (daemon, some) = try pending.client.takeStatus(hasPipelines: !names.isEmpty)
                model.answered(daemon, at: now)
                model.merge(some)
            } catch .refused {
                // One of the pipelines is gone.
                beginWhole(at: now)
            } catch {
                throw error
            }
        }
    }

    /// Requests the page of the selected pipeline if it is open and not current. Keys wait for the answers, at most as
    /// long as for the rest of another answer; so it is requested only from a daemon that answers.
    private mutating func loadDetails() {
        guard let pipeline = model.missingDetails, monitor != nil, !model.isOld else { return }
        do throws(ControlClient.Failure) {
            let client = try ControlClient(path: session.socketPath)
            client.replyTimeout = Self.answerLimit
            model.take(try TopDetails(of: pipeline, client))
        } catch .refused {
            // The pipeline is gone: the list follows soon.
            model.take(TopDetails(of: pipeline))
        } catch {
            disconnect(error)
        }
    }

    private mutating func takeEvents(_ monitor: ControlClient) throws(ControlClient.Failure) {
        while let reply = try monitor.takeEvent() {
            guard let event = reply.event else { continue }
            if event.kind == .reloaded || event.kind == .skipped { beginWhole(at: session.context.now()) }
            if model.apply(event) { isDirty = true }
        }
        model.arrangeAfterEvents()
    }

    private mutating func refresh(_ name: String) {
        guard monitor != nil, !model.isOld else {
            model.message = "freshetd does not answer"
            return
        }
        do throws(ControlClient.Failure) {
            let client = try ControlClient(path: session.socketPath)
            client.replyTimeout = Self.answerLimit
            try client.beginRefresh(ControlMessage.Refresh(names: [name]))
            refreshes.append(client)
        } catch {
            model.message = session.failure(error).message
        }
    }

    private mutating func takeRefreshResult(_ client: ControlClient) {
        refreshes.removeAll { $0 === client }
        do throws(ControlClient.Failure) {
            let times = session.times
            try client.takeRefreshed { model.message = RefreshView.text($0, waited: false, times) }
        } catch {
            model.message = session.failure(error).message
        }
    }

    /// Handles a daemon that is gone or does not answer; top connects again each second.
    private mutating func disconnect(_ failure: ControlClient.Failure) {
        (monitor, pending, refreshes) = (nil, nil, [])
        paging = (nil, false)
        let lines = session.failure(failure).message.split(separator: "\n")
        let isRefusing = if case .refused = failure { true } else { false }
        model.disconnect(lines.first.map(String.init) ?? "", isRefusing: isRefusing)
    }
}
