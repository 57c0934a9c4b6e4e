import ArgumentParser
import FreshetControl
import FreshetRender

struct Signals: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Show the sources of signals: the present facts, and what fired last.")

    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let signals = try session.asking { () throws(ControlClient.Failure) in try client.signals() }
        if options.json { return session.print(json: ControlMessage.Signals(signals: signals)) }
        let times = session.times
        let table = Table(
            columns: [
                .init("SIGNAL"), .init("FACT", shrinksTo: 12), .init("FIRED", .right), .init("LAST"),
                .init("DETAIL", shrinksTo: 8),
            ],
            rows: signals.map { signal in
                [
                    Table.Cell(signal.name),
                    signal.unavailable.map { Table.Cell("unavailable: \($0)", .busy) } ?? Table.Cell(signal.fact),
                    Table.Cell(String(signal.fired)),
                    Table.Cell(signal.lastFired.map(times.relative) ?? "-"),
                    Table.Cell(signal.lastDetail ?? ""),
                ]
            })
        session.print(table, total: "\(Count.text(signals.count, "signal")) listed.")
    }
}
