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

    /// How long the daemon may take to answer: keys and signals wait as long, and one that hangs is as good as gone.
    private static let patience: Duration = .seconds(2)

    private let names: [String]?
    private let session: Session
    private var model = TopModel()
    private var client: ControlClient?
    private var monitor: ControlClient?
    private var widths: [Int] = []
    /// The last name of what is being asked for, page by page; nil: nothing is.
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

    /// Connects, and asks for the first pipelines.
    mutating func connect() throws(CommandFailure) {
        let client = try session.connect()
        client.patience = Self.patience
        let monitor = try session.connect()
        let names = names
        model.daemon = try session.asking { () throws(ControlClient.Failure) in
            try monitor.beginMonitor(names)
            return try client.daemon()
        }
        (self.client, self.monitor) = (client, monitor)
        begin()
        try session.asking { () throws(ControlClient.Failure) in try askPage() }
    }

    mutating func run(_ terminal: FullScreen) -> End {
        fit(terminal)
        draw(terminal)
        while true {
            // While there is more to ask for nothing is waited for; else a clock goes on each second.
            let patience: Int32 = asked.isUnderWay ? 0 : Int32(1_000 - session.context.now() / 1_000 % 1_000)
            switch terminal.next(beside: monitor?.rawDescriptor, milliseconds: patience) {
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
            case .other: takeEvents()
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

    private mutating func begin() {
        asked = (nil, true)
        gathering = []
        lastWhole = session.context.now()
    }

    private mutating func askPage() throws(ControlClient.Failure) {
        guard asked.isUnderWay else { return }
        if asked.after == nil { try connectAnew() }
        guard let client else { return }
        let some = try client.pipelines(ControlMessage.List(names: names, after: asked.after, limit: Self.page))
        gathering += some
        // What is there is shown at once.
        model.merge(some)
        if some.count < Int(Self.page) {
            model.replace(with: gathering)
            (asked, gathering) = ((nil, false), [])
        } else {
            asked.after = some.last?.name
        }
    }

    /// Asks for what is due, and connects anew if the daemon was gone.
    private mutating func askOn() {
        let now = session.context.now()
        guard client != nil, monitor != nil else {
            guard now - lastVisible >= Self.visibleEvery else { return }
            lastVisible = now
            try? connect()
            return
        }
        do throws(ControlClient.Failure) {
            if asked.isUnderWay { return try askPage() }
            if model.order != .name, isDirty, now - lastWhole >= Self.wholeEvery { return begin() }
            let isBusy = model.visible.contains { $0.state == .loading }
            guard isDirty || isBusy, now - lastVisible >= Self.visibleEvery else { return }
            (lastVisible, isDirty) = (now, false)
            try askVisible()
        } catch {
            lose(error)
        }
    }

    /// The daemon closes connections that say nothing for a while, and this one may have.
    private mutating func connectAnew() throws(ControlClient.Failure) {
        let client = try ControlClient(path: session.socketPath)
        client.patience = Self.patience
        self.client = client
    }

    private mutating func askVisible() throws(ControlClient.Failure) {
        try connectAnew()
        guard let client else { return }
        model.daemon = try client.daemon()
        let visible = model.visible.map(\.name)
        guard !visible.isEmpty else {
            // None, and not only none that the filter lets through.
            if model.count == 0 { begin() }
            return
        }
        do throws(ControlClient.Failure) {
            model.merge(try client.pipelines(visible))
        } catch .refused {
            // One of them is gone.
            begin()
        } catch {
            throw error
        }
    }

    private mutating func takeEvents() {
        do throws(ControlClient.Failure) {
            while let reply = try monitor?.takeEvent() {
                guard let event = reply.event else { continue }
                if event.kind == .reloaded || event.kind == .skipped { begin() }
                if model.note(event) { isDirty = true }
            }
            model.arrangeAfterEvents()
        } catch {
            lose(error)
        }
    }

    private mutating func refresh(_ name: String) {
        guard client != nil else { return }
        do throws(ControlClient.Failure) {
            try connectAnew()
            try client?.refresh(ControlMessage.Refresh(names: [name])) { result in
                model.message = RefreshView.text(result, waited: false, session.times)
            }
        } catch .closed {
            lose(.closed)
        } catch {
            model.message = session.failure(error).message
        }
    }

    /// The daemon is gone: it is tried again each second.
    private mutating func lose(_ failure: ControlClient.Failure) {
        (client, monitor) = (nil, nil)
        asked = (nil, false)
        model.forget()
        model.message = session.failure(failure).message.split(separator: "\n").first.map(String.init)
    }
}
