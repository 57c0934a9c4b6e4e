import ArgumentParser
import FreshetControl
import FreshetRender

struct Top: Verb {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Watch pipelines live, on a terminal.",
        discussion: """
            Keys: q quits, s sorts by the next column and S the other way round, / filters by name, r refreshes the chosen \
            pipeline, Enter shows all about it, ? shows all keys. The terminal is left as it was, also when this is killed, but \
            by SIGKILL; 'reset' helps then. Where there is no terminal, 'freshetctl list' prints the same once.

            Examples:
              freshetctl top
              freshetctl top 'feed-*'
            """)

    @Argument(help: "Pipelines, or patterns; all of them if none is named.") var names: [String] = []
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if options.json {
            throw ValidationError("There is no JSON of a screen; 'freshetctl monitor --json' prints what happens.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let remedy = "'freshetctl list' prints the pipelines, 'freshetctl monitor' what happens"
        guard session.context.isTerminal, session.context.answer != nil else {
            throw CommandFailure(.failure, "top needs a terminal; \(remedy)")
        }
        guard let kind = session.context.environment["TERM"], !kind.isEmpty, kind != "dumb" else {
            throw CommandFailure(.failure, "top needs a terminal that can be drawn on, and $TERM names none; \(remedy)")
        }
        // Before the screen is taken: what is wrong from the beginning is an error like any other.
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

/// `top` as long as it runs: asks the daemon, draws, hears keys and events.
private struct TopScreen {
    /// How a screen ends.
    enum End {
        case quit
        case signal(Int32)
    }

    /// Pipelines that are asked for at once: so many are answered in a blink, between two keys.
    private static let page: Int64 = 500
    /// How often all are asked for anew, where the order depends on all: events tell the rest meanwhile.
    private static let wholeEvery: Int64 = 30_000_000
    /// How often what is on the screen is asked for, while something happens.
    private static let visibleEvery: Int64 = 1_000_000
    /// How often while nothing does, so that it is noticed if the daemon hangs.
    private static let restingEvery: Int64 = 5_000_000

    /// How long the rest of an answer may take that has begun: keys and signals wait as long.
    private static let patience: Duration = .seconds(2)

    /// What the daemon was asked, and has not answered yet. Nobody waits for it: keys, signals and the clock go on.
    private struct Question {
        enum Kind {
            /// All pipelines, page by page: those after a name.
            case page(after: String?)
            /// Those that are on the screen; if there are none, the daemon alone.
            case visible([String])
        }

        var client: ControlClient
        var kind: Kind
        var at: Int64
    }

    private let names: [String]?
    private let session: Session
    private var model = TopModel()
    /// Nil: the daemon is gone.
    private var monitor: ControlClient?
    private var question: Question?
    /// Of runs that were asked for.
    private var orders: [ControlClient] = []
    private var widths: [Int] = []
    /// The last name of what is being asked for, page by page.
    private var asked: (after: String?, isUnderWay: Bool) = (nil, false)
    private var gathering: [PipelineStatus] = []
    private var lastWhole: Int64 = 0
    private var lastVisible: Int64 = 0
    /// Something has happened since what is on the screen was asked for.
    private var isDirty = true

    init(_ names: [String]?, _ session: Session) {
        self.names = names
        self.session = session
    }

    /// Connects, and asks for the first pipelines; waits for them.
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
            // A clock goes on each second.
            let patience = Int32(1_000 - session.context.now() / 1_000 % 1_000)
            let others = ([monitor, question?.client].compactMap(\.self) + orders).map(\.rawDescriptor)
            switch terminal.next(beside: others, milliseconds: patience) {
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
            askOn()
            if !draw(terminal) { return .quit }
        }
    }

    private mutating func fit(_ terminal: FullScreen) {
        let room = max(1, terminal.size.rows - TopView.otherLines)
        if model.room != room { model.room = room }
    }

    @discardableResult
    private mutating func draw(_ terminal: FullScreen) -> Bool {
        let (columns, rows) = terminal.size
        let view = TopView(model: model, times: session.times, palette: session.palette)
        return terminal.draw(view.lines(columns: columns, rows: rows, widths: &widths))
    }

    // MARK: The daemon

    /// Follows what happens, and asks for all pipelines.
    private mutating func begin(at now: Int64) throws(ControlClient.Failure) {
        let monitor = try ControlClient(path: session.socketPath)
        try monitor.beginMonitor(names)
        self.monitor = monitor
        beginWhole(at: now)
        try ask(.page(after: nil), at: now)
    }

    private mutating func beginWhole(at now: Int64) {
        asked = (nil, true)
        gathering = []
        lastWhole = now
        // The rest of what was asked for before would be taken for a part of this.
        if case .page? = question?.kind { question = nil }
    }

    /// On a connection of its own: the daemon closes those that say nothing for a while.
    private mutating func ask(_ kind: Question.Kind, at now: Int64) throws(ControlClient.Failure) {
        let client = try ControlClient(path: session.socketPath)
        client.patience = Self.patience
        switch kind {
        case .page(let after): try client.beginLook(ControlMessage.List(names: names, after: after, limit: Self.page))
        case .visible(let names): try client.beginLook(names.isEmpty ? nil : ControlMessage.List(names: names))
        }
        question = Question(client: client, kind: kind, at: now)
    }

    /// Asks for what is due, and connects anew if the daemon was gone.
    private mutating func askOn() {
        let now = session.context.now()
        if let question { return model.waits(since: question.at, now: now) }
        do throws(ControlClient.Failure) {
            guard monitor != nil else {
                guard now - lastVisible >= Self.visibleEvery else { return }
                lastVisible = now
                return try begin(at: now)
            }
            if asked.isUnderWay { return try ask(.page(after: asked.after), at: now) }
            if model.order != .name, isDirty, now - lastWhole >= Self.wholeEvery { beginWhole(at: now) }
            let isBusy = isDirty || model.visible.contains { $0.state == .loading }
            guard now - lastVisible >= (isBusy ? Self.visibleEvery : Self.restingEvery) else { return }
            (lastVisible, isDirty) = (now, false)
            // None at all, and not only none that the filter lets through.
            if model.count == 0 { beginWhole(at: now) }
            try ask(asked.isUnderWay ? .page(after: nil) : .visible(model.visible.map(\.name)), at: now)
        } catch {
            lose(error)
        }
    }

    /// Takes what has come.
    private mutating func take(_ readable: [Int32]) {
        for order in orders where readable.contains(order.rawDescriptor) { takeOrdered(order) }
        do throws(ControlClient.Failure) {
            if let monitor, readable.contains(monitor.rawDescriptor) { try takeEvents(monitor) }
            if let question, readable.contains(question.client.rawDescriptor) { try takeAnswer() }
        } catch {
            lose(error)
        }
    }

    private mutating func takeAnswer() throws(ControlClient.Failure) {
        guard let question else { return }
        self.question = nil
        let now = session.context.now()
        switch question.kind {
        case .page:
            let (daemon, some) = try question.client.takeLook(hasPipelines: true)
            model.answered(daemon, at: now)
            gathering += some
            // What is there is shown at once.
            model.merge(some)
            if some.count < Int(Self.page) {
                model.replace(with: gathering)
                (asked, gathering) = ((nil, false), [])
            } else {
                asked.after = some.last?.name
            }
        case .visible(let names):
            do throws(ControlClient.Failure) {
                let (daemon, some) = try question.client.takeLook(hasPipelines: !names.isEmpty)
                model.answered(daemon, at: now)
                model.merge(some)
            } catch .refused {
                // One of them is gone.
                beginWhole(at: now)
            } catch {
                throw error
            }
        }
    }

    private mutating func takeEvents(_ monitor: ControlClient) throws(ControlClient.Failure) {
        while let reply = try monitor.takeEvent() {
            guard let event = reply.event else { continue }
            if event.kind == .reloaded || event.kind == .skipped { beginWhole(at: session.context.now()) }
            if model.note(event) { isDirty = true }
        }
        model.arrangeAfterEvents()
    }

    private mutating func refresh(_ name: String) {
        guard monitor != nil, !model.isOld else {
            model.message = "freshetd does not answer"
            return
        }
        do throws(ControlClient.Failure) {
            let order = try ControlClient(path: session.socketPath)
            order.patience = Self.patience
            try order.beginRefresh(ControlMessage.Refresh(names: [name]))
            orders.append(order)
        } catch {
            model.message = session.failure(error).message
        }
    }

    private mutating func takeOrdered(_ order: ControlClient) {
        orders.removeAll { $0 === order }
        do throws(ControlClient.Failure) {
            let times = session.times
            try order.takeRefreshed { model.message = RefreshView.text($0, waited: false, times) }
        } catch {
            model.message = session.failure(error).message
        }
    }

    /// The daemon is gone, or does not answer what it has to: it is tried again each second.
    private mutating func lose(_ failure: ControlClient.Failure) {
        (monitor, question, orders) = (nil, nil, [])
        asked = (nil, false)
        let lines = session.failure(failure).message.split(separator: "\n")
        let isThere = if case .refused = failure { true } else { false }
        model.lose(lines.first.map(String.init) ?? "", isThere: isThere)
    }
}
