import FreshetControl
import FreshetRender
import Testing

@testable import FreshetCommands

@Suite struct TopTests {
    // MARK: Keys

    @Test(
        "the input of a terminal is parsed as keys, in pieces of any size",
        arguments: [
            ("q", [.character("q")]), ("\u{1B}[A\u{1B}OB", [.up, .down]), ("\u{1B}[5~\u{1B}[6~", [.pageUp, .pageDown]),
            ("\u{1B}[1;5H\u{1B}[F\u{1B}[1~", [.home, .end, .home]), ("\r\u{7F}\u{C}", [.enter, .backspace, .redraw]),
            ("ä…", [.character("ä"), .character("…")]), ("\u{1B}[200~", []), ("\u{1}", []),
        ] as [(String, [TopKey])])
    func keys(text: String, expected: [TopKey]) {
        var whole = TopKeyReader()
        let atOnce = whole.read(text.utf8)
        #expect(atOnce == expected)
        var pieces = TopKeyReader()
        let oneByOne = text.utf8.flatMap { pieces.read([$0]) }
        #expect(oneByOne == expected)
        #expect(!whole.isIncomplete && !pieces.isIncomplete)
    }

    @Test("Esc is a key if nothing follows, or before a letter")
    func escape() {
        var reader = TopKeyReader()
        let begun = reader.read([0x1B])
        #expect(begun.isEmpty && reader.isIncomplete)
        let flushed = reader.flush()
        #expect(flushed == [.escape] && !reader.isIncomplete)
        let both = reader.read([0x1B, 0x71])
        #expect(both == [.escape, .character("q")])
    }

    @Test("an endless sequence is given up, and bytes that are not text are ignored")
    func rubbish() {
        var reader = TopKeyReader()
        _ = reader.read([0x1B, 0x5B] + [UInt8](repeating: 0x31, count: 40))
        let after = reader.read([0x71])
        #expect(after.last == .character("q"))
        let others = reader.read([0xFF, 0x71, 0x71, 0x71, 0x71])
        #expect(others.contains(.character("q")))
    }

    // MARK: The page of a pipeline

    @Test("Enter opens the page of the selected pipeline, which scrolls; q and Esc close it")
    func page() {
        var model = model()
        #expect(model.missingDetails == nil)
        _ = model.press(.down)
        _ = model.press(.enter)
        #expect(model.page == .details && model.missingDetails?.name == "p01")
        model.hiddenDetailLines = 7
        _ = model.press(.pageDown)
        #expect(model.detailsOffset == 7 && model.chosen == "p01")
        _ = model.press(.up)
        #expect(model.detailsOffset == 6)
        model.hiddenDetailLines = 2
        #expect(model.detailsOffset == 2)
        let closed = model.press(.character("q"))
        #expect(closed == .none && model.page == .list)
        _ = model.press(.enter)
        #expect(model.detailsOffset == 0)
        _ = model.press(.escape)
        #expect(model.page == .list)
    }

    @Test("a page is requested again after another run or generation, and not otherwise")
    func current() throws {
        var model = model()
        _ = model.press(.enter)
        let chosen = try #require(model.missingDetails)
        model.take(TopDetails(of: chosen))
        #expect(model.missingDetails == nil)
        let run = RunStatus(number: 13, started: Scenario.now, durationUSec: 1, outcome: .changed)
        _ = model.apply(.runEnded(run, of: chosen.name, at: Scenario.now))
        #expect(model.missingDetails?.lastRun?.number == 13)
    }

    @Test("a page has the last runs, newest first, and the lines of a difference, both bounded")
    func contents() throws {
        var details = TopDetails(of: Scenario.statuses[1])
        details.take(Scenario.events)
        #expect(details.runs.map(\.number) == [5, 4, 3, 2, 1])
        details.take(["@@ -1 +1 @@", "-old\u{1B}[2J", "+new", " same"] + (0..<300).map { " \($0)" })
        #expect(details.difference.count == TopDetails.mostLines + 1)
        #expect(details.difference[1] == .init(text: "-old\\u{1b}[2J", style: .bad))
        #expect(details.difference[2].style == .good && details.difference[3].style == .plain)
        #expect(details.difference.last?.text == "104 further lines; 'freshetctl diff flags' prints all")
        details.title = "From generation 1 to 2"
        var model = TopModel()
        model.replace(with: Scenario.statuses)
        _ = model.press(.down)
        _ = model.press(.enter)
        model.take(details)
        let view = TopView(model: model, times: Scenario.times, palette: Palette(isColourful: false))
        #expect(view.hiddenDetailLines(columns: 80, rows: 24) > 200)
        var widths: [Int] = []
        let lines = view.lines(columns: 80, rows: 60, widths: &widths)
        #expect(lines.count == 60 && lines.allSatisfy { DisplayText.width(of: $0) <= 80 })
        #expect(lines.contains("Last runs:") && lines.contains("From generation 1 to 2") && lines.contains("  +new"))
        #expect(lines.contains { $0.contains("#3 failed after 95 ms") && $0.contains("503") }, "\(lines)")
        #expect(lines.last == "q, Esc: back to the list")
    }

    // MARK: The model

    private func model(_ count: Int = 30, room: Int = 10) -> TopModel {
        var model = TopModel()
        model.visibleRows = room
        model.replace(
            with: (0..<count).map { number in
                Scenario.status("p\(number < 10 ? "0" : "")\(number)", number == 17 ? .failed : .loaded) {
                    $0.lastCheck = Scenario.now - Int64(number) * Scenario.minute
                    $0.generation?.size = Int64(number)
                }
            })
        return model
    }

    private func press(_ keys: [TopKey], _ model: inout TopModel) -> [TopModel.Action] {
        keys.map { key in model.press(key) }.filter { action in action != .none }
    }

    private func apply(_ event: ControlEvent, _ model: inout TopModel) -> Bool { model.apply(event) }

    @Test("the selected row is always on the screen")
    func choosing() {
        var model = model()
        #expect(model.chosen == "p00")
        _ = press([.down, .down, .pageDown], &model)
        #expect(model.chosen == "p12" && model.offset == 3 && model.visible.count == 10)
        _ = press([.end], &model)
        #expect(model.chosen == "p29" && model.offset == 20)
        _ = press([.home, .up], &model)
        #expect(model.chosen == "p00" && model.offset == 0)
        _ = press([.end], &model)
        model.visibleRows = 3
        #expect(model.visible.map(\.name) == ["p27", "p28", "p29"])
    }

    @Test("s sorts by the next column, S reverses the order; by state, failed pipelines are first")
    func sorting() {
        var model = model()
        _ = press([.character("s")], &model)
        #expect(model.order == .state && model.rows.first == "p17")
        _ = press([.character("s")], &model)
        #expect(model.order == .checked && model.rows.first == "p29")
        _ = press([.character("S")], &model)
        #expect(model.rows.first == "p00" && model.isReversed)
        _ = press([.character("s"), .character("s")], &model)
        #expect(model.order == .size && model.rows.first == "p29" && !model.isReversed)
        _ = press([.character("s")], &model)
        #expect(model.order == .name)
    }

    @Test("a filter is kept by Enter and removed by Esc; while it is typed, letters are not commands")
    func filtering() {
        var model = model()
        #expect(press([.character("/"), .character("1"), .character("q"), .backspace], &model).isEmpty)
        #expect(model.isTyping && model.rows.count == 12)
        _ = press([.enter], &model)
        #expect(!model.isTyping && model.filter == "1" && model.chosen == "p01")
        _ = press([.escape], &model)
        #expect(model.rows.count == 30)
        _ = press([.character("/"), .character("z")], &model)
        #expect(model.rows.isEmpty && model.chosen == nil)
        #expect(press([.enter, .character("r")], &model).isEmpty)
    }

    @Test("r refreshes the selected pipeline, q quits")
    func actions() {
        var model = model()
        #expect(press([.down, .character("r"), .character("q")], &model) == [.refresh("p01"), .quit])
        #expect(press([.character("?"), .character("q"), .redraw], &model) == [.redraw])
        #expect(model.page == .list)
    }

    @Test("events change rows before the next request; events of other pipelines change nothing")
    func events() {
        var model = model(3)
        let run = RunStatus(number: 13, started: 1, causes: [CauseStatus(signal: "network", first: 1, last: 1)])
        #expect(apply(.runStarted(run, of: "p01", at: 1), &model))
        #expect(!apply(.runStarted(run, of: "gone", at: 1), &model))
        #expect(!apply(.signal("network", number: 2, at: 1), &model))
        model.arrangeAfterEvents()
        #expect(model.visible.map(\.state) == [.loaded, .loading, .loaded] && model.count == 3)
        #expect(model.visible[1].lastCauses.map(\.signal) == ["network"])
        #expect(apply(.state(.waiting, of: "p01", waitingFor: .network, at: 2), &model))
        model.arrangeAfterEvents()
        #expect(model.visible[1].waitingFor == .network)
    }

    @Test("if the selected row is removed, its neighbour is selected")
    func gone() {
        var model = model(5)
        _ = press([.down, .down], &model)
        model.replace(with: ["p00", "p01", "p04"].map { Scenario.status($0, .loaded) })
        #expect(model.chosen.map { ["p00", "p01", "p04"].contains($0) } == true)
    }

    // MARK: A daemon that is gone, hangs and returns

    private func lines(
        _ model: TopModel, now: Int64 = Scenario.now, columns: Int = 80, isColourful: Bool = false
    ) -> [String] {
        var widths: [Int] = []
        let times = Times(now: now, timeZone: { _ in (0, "UTC") })
        return TopView(model: model, times: times, palette: Palette(isColourful: isColourful))
            .lines(columns: columns, rows: 12, widths: &widths)
    }

    private static let daemon = DaemonStatus(
        version: "1.0", pid: 7, since: Scenario.now - Scenario.minute, network: "reachable", networkReachable: true,
        pipelines: PipelineCounts([.loaded]))

    @Test("while the daemon is gone, the head says so, and the rows and keys stay")
    func goneDaemon() {
        var model = model(3)
        model.answered(Self.daemon, at: Scenario.now)
        let before = lines(model)
        #expect(before.first?.hasPrefix("freshetd 1.0, up 1min") == true)
        model.disconnect("freshetd closed the connection")
        let gone = lines(model)
        #expect(gone[0].hasPrefix("freshetd does not answer ") && gone[1] == "freshetd closed the connection")
        #expect(gone[2] == "The status below is from 02:39:23.")
        #expect(Array(gone[4...]) == Array(before[4...]) && gone.last?.contains("q quit") == true)
        let pale = lines(model, isColourful: true)
        #expect(pale[6].hasPrefix("\u{1B}[0;2mp01") && !pale.contains { $0.contains("\u{1B}[0;1;32m") })
        model.answered(Self.daemon, at: Scenario.now)
        #expect(lines(model) == before)
        // A long message continues in the next line.
        model.disconnect(String(repeating: "nobody answers ", count: 8) + "and so on")
        #expect(lines(model)[2].hasSuffix("and so on") && lines(model)[3] == gone[2])
        // A daemon that refuses a request is not gone.
        model.disconnect("there is no pipeline 'a'", isRefusing: true)
        #expect(lines(model)[0].hasPrefix("freshetd refuses "))
    }

    @Test("a daemon without an answer for three seconds is shown as silent, with the duration")
    func hangingDaemon() {
        var model = model(3)
        model.answered(Self.daemon, at: Scenario.now)
        let asked = Scenario.now
        model.updateSilence(since: asked, now: asked + 2_900_000)
        #expect(!model.isOld)
        model.updateSilence(since: asked, now: asked + 12 * Scenario.second)
        let hangs = lines(model, now: asked + 12 * Scenario.second)
        #expect(hangs[0].hasPrefix("freshetd does not answer, for 12.0 s ") && hangs[0].hasSuffix("02:39:35"))
        #expect(hangs.contains { $0.hasPrefix("p01 ") })
        model.answered(Self.daemon, at: asked + 13 * Scenario.second)
        #expect(!model.isOld)
    }

    @Test("the last signal of the previous daemon is removed")
    func anotherDaemon() {
        var model = model(3)
        model.answered(Self.daemon, at: Scenario.now)
        _ = apply(.signal("network", number: 2, at: Scenario.now), &model)
        model.answered(Self.daemon, at: Scenario.now)
        #expect(model.signal != nil)
        var other = Self.daemon
        other.pid = 8
        model.answered(other, at: Scenario.now)
        #expect(model.signal == nil)
    }

    @Test("on a narrow terminal lines fit, and titles are complete", arguments: [120, 80, 60, 50, 40])
    func narrow(columns: Int) {
        // The selected row is in reverse video.
        let lines = lines(model(3), columns: columns).map {
            $0.replacing("\u{1B}[7m", with: "").replacing("\u{1B}[0m", with: "")
        }
        #expect(lines.allSatisfy { DisplayText.width(of: $0) <= columns }, "\(lines)")
        let titles = lines[4].split(separator: " ")
        #expect(titles.starts(with: ["NAME", "STATE"]))
        #expect(titles.allSatisfy { ["NAME", "STATE", "GEN", "SIZE", "CHECKED", "NEXT", "LAST", "RUN"].contains($0) })
    }

    // MARK: The verb

    @Test("without a suitable terminal, top names other commands")
    func noTerminal() {
        let transcript = Transcript()
        #expect(freshetctl("top", transcript, socket: "/nonexistent/s") == .failure)
        #expect(transcript.printError.contains("top needs a terminal; 'freshetctl list' prints the pipelines"))
        let dumb = Transcript()
        var context = dumb.context(environment: ["TERM": "dumb"], columns: 80)
        context.answer = { nil }
        #expect(Freshetctl.run(["top"], context) == .failure)
        #expect(dumb.printError.contains("$TERM"))
        #expect(freshetctl("top --json", Transcript()) == .usage)
    }
}
