import AsyncAlgorithms
import FreshetSignals
import OpenCombine

/// The time from a new value of one of many branches until the array with it was taken, compared to copying such an
/// array.
func accumulate(_ bench: Bench) {
    for count in [10, 100, 1_000, 10_000] {
        let number = grouped(count)
        bench.table(
            "accumulate\(count)", "accumulateLatestMany of \(number): a value → the array with it, on one thread",
            [
                copied("copying the array once", Array(0..<count)),
                accumulated("Freshet", count: count, keepingLast: false) { $0 },
                accumulated("Freshet, the last array is kept", count: count, keepingLast: true) { $0 },
                copied("copying an array of strings once", (0..<count).map(longText)),
                accumulated("Freshet, strings", count: count, keepingLast: false, longText),
                accumulated("Freshet, strings, the last array is kept", count: count, keepingLast: true, longText),
            ])
    }
    print(
        """

        - OpenCombine 0.14 has no combineLatest: there is no row
        - swift-async-algorithms combines 2 or 3 sequences: see the next table
        """)
    bench.table(
        "combinePool", "The latest of 3 AsyncStreams: yield → next(), on the global executor",
        [
            pingPong("Freshet, accumulateLatestMany", streams: 3, first: 1) { accumulateLatestMany($0) },
            pingPong("Freshet, combineLatest", streams: 3, first: 1) {
                FreshetSignals.combineLatest($0[0], $0[1], $0[2])
            },
            pingPong("swift-async-algorithms, combineLatest", streams: 3, first: 1) {
                AsyncAlgorithms.combineLatest($0[0], $0[1], $0[2])
            },
        ],
        missing: ["OpenCombine 0.14 has no combineLatest"])
}

/// Too long to be stored inline: copying the string counts a reference.
private func longText(_ number: Int) -> String {
    "the element with the number \(number)"
}

private func copied<Element: Sendable>(_ name: String, _ array: [Element]) -> Subject {
    var turn = 0
    return Subject(name) { operations in
        for _ in 0..<operations {
            var copy = array
            copy[turn] = array[0]
            use(&copy)
            turn = turn + 1 == array.count ? 0 : turn + 1
        }
    }
}

private func accumulated<Element: Sendable>(
    _ name: String, count: Int, keepingLast: Bool, _ element: (Int) -> Element
) -> Subject {
    let elements = (0..<count).map(element)
    let values = elements.map { CurrentValue($0) }
    let stage = Stage()
    let first = Counter()
    let counter = Counter()
    let task = stage.startConsumer(
        to: accumulateLatestMany(values), counting: first.value == 0 ? first : counter, keepingLast: keepingLast)
    var turn = 0
    return received(name, counter, 1, stage, [task]) {
        values[turn].value = elements[0]
        turn = turn + 1 == count ? 0 : turn + 1
    }
}

/// The time from an element of the upstream to its pair.
func pair(_ bench: Bench) {
    bench.table(
        "pair", "withLatestFrom: an element → its pair",
        [
            pairedOnStage("AsyncStream alone, on one thread") { stream, _ in stream },
            pairedOnStage("Freshet, on one thread") { $0.withLatestFrom($1) },
            pingPong("AsyncStream alone, on the global executor", streams: 1) { $0[0] },
            pingPong("Freshet, on the global executor", streams: 1) { $0[0].withLatestFrom(CurrentValue(1)) },
        ],
        missing: ["OpenCombine 0.14 and swift-async-algorithms have no withLatestFrom"])
}

private func pairedOnStage<S: AsyncSequence & Sendable>(
    _ name: String, _ make: (AsyncStream<Int>, CurrentValue<Int>) -> S
) -> Subject where S.Element: Sendable {
    let stream = AsyncStream<Int>.makeStream()
    let stage = Stage()
    let counter = Counter()
    let task = stage.startConsumer(to: make(stream.stream, CurrentValue(1)), counting: counter)
    return received(name, counter, 1, stage, [task]) { stream.continuation.yield(1) }
}
