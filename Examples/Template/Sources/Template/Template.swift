import Foundation
import FreshetSignals
import FreshetSystemSignals

/// The state of the latest attempt.
enum State: Sendable {
    case loading
    case loaded([String])
    case failed(String)
}

/// Loads the data: here the name servers of this machine; in your program a request, for example.
@Sendable func load() async throws -> [String] {
    let text = try String(contentsOfFile: "/etc/resolv.conf", encoding: .utf8)
    return text.split(separator: "\n").filter { $0.hasPrefix("nameserver ") }.map { String($0.dropFirst(11)) }
}

/// Loads immediately, and again at each of two signals. A signal cancels the attempt in progress, and an error is a
/// state: it does not end the sequence.
func states(networkChanged: Signal, reload: Signal) -> some AsyncSequence<State, Never> & Sendable {
    publishAndRepeat(onOutputFrom: Signal.merge(networkChanged, reload)) {
        Emitter<[String], any Error>.once(load)
            .map { State.loaded($0) }
            .replaceError { .failed("\($0)") }
            .prepend(.loading)
    }
}

@main
struct Template {
    static func main() async {
        let file = WatchedFile(at: "/etc/resolv.conf")
        for await state in states(networkChanged: Reachability.signal, reload: file.signal) {
            print(state)
        }
    }
}
