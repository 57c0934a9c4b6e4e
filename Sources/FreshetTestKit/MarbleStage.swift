public import FreshetSignals

/// Plays marble diagrams: it has sources that follow a diagram, a manual clock, a serial executor, and an observer that
/// records the result as a diagram.
///
/// ```swift
/// let stage = MarbleStage()
/// let a = stage.signal("-a---a-|")
/// let b = stage.signal("---b----|")
/// try stage.expect(Signal.merge(a, b), "-o-o-o--|")
/// ```
///
/// In each frame the inputs do what their diagrams contain, in the order in which they were made; then all tasks run
/// until the executor is idle; then the timers of this frame wake their sleepers, and all tasks run again until the
/// executor is idle. So at the same instant elements come before timers, and each play has the same result. A stage
/// plays once: make one for each observation.
public final class MarbleStage: Sendable {
    /// Runs the observed sequence.
    public let executor = SerialTestExecutor()
    /// The clock for the timers of the observed sequence.
    public let clock = ManualClock()
    /// The duration of a frame on the clock.
    public let frame: Duration

    private struct State {
        var actions: [(frame: Int, act: @Sendable () -> Void)] = []
        var frames = 0
        var marks: [Marbles.Mark] = []
        var currentFrame = 0
    }

    private let state = Lock(State())

    /// An empty stage.
    public init(frame: Duration = .milliseconds(10)) {
        self.frame = frame
    }

    // MARK: Inputs

    /// A signal that fires for each element of the diagram, with the element's name as the detail, and finishes at the
    /// end of the diagram.
    ///
    /// - Parameters:
    ///   - diagram: The frames in which it fires.
    ///   - name: The name of its source.
    public func signal(_ diagram: Marbles, named name: String = "signal") -> Signal {
        let source = SignalSource(name, now: { [clock] in clock.now })
        play(diagram) { event in
            switch event {
            case .element(let detail): source.fire(detail)
            case .end: source.finish()
            case .failure, .request, .cancel:
                preconditionFailure("a signal cannot do this: \(diagram)")  // safe: in a test
            }
        }
        return source.signal
    }

    /// A value that is set to the name of each element of the diagram, and finishes at the end of the diagram.
    public func currentValue(_ initial: String, _ diagram: Marbles) -> CurrentValue<String> {
        let current = CurrentValue(initial)
        play(diagram) { event in
            switch event {
            case .element(let name): current.value = name
            case .end: current.finish()
            case .failure, .request, .cancel:
                preconditionFailure("a value cannot do this: \(diagram)")  // safe: in a test
            }
        }
        return current
    }

    /// A sequence that plays the diagram for each iteration; frame 0 is the frame of the iteration's first `next()`.
    /// Its failure is a ``MarbleFailure``.
    public func emitter(_ diagram: Marbles) -> Emitter<String, any Error> {
        state.withLock { $0.frames = max($0.frames, diagram.frames) }
        return Emitter(ColdMarbles(diagram: diagram, clock: clock, frame: frame))
    }

    /// Runs a closure in a frame, in the order of the calls.
    public func at(frame: Int, _ act: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.actions.append((frame, act))
            state.frames = max(state.frames, frame + 1)
        }
    }

    private func play(_ diagram: Marbles, _ act: @escaping @Sendable (Marbles.Event) -> Void) {
        for mark in diagram.marks {
            at(frame: mark.frame) { act(mark.event) }
        }
        state.withLock { $0.frames = max($0.frames, diagram.frames) }
    }

    // MARK: The observer

    /// Plays all inputs and returns the result of the sequence as a diagram.
    ///
    /// The iterator is made before frame 0.
    ///
    /// - Parameters:
    ///   - sequence: The sequence to observe.
    ///   - consumer: The actions of the consumer. `^` is a call of `next()`: if the diagram has one, the consumer only
    ///     calls `next()` in those frames, after it has the previous element. Otherwise it always calls `next()` again
    ///     immediately. `!` cancels the consumer's task.
    ///   - frames: The minimum number of frames to play; by default the length of the longest diagram.
    ///   - name: The name of an element in the result. By default a `Void` is `o`, and every other element is its
    ///     description.
    /// - Returns: The elements, the end or the failure, in the frames in which the consumer got them. A cancelled
    ///   consumer gets the end when `next()` has returned. The actions of the consumer are not part of it.
    /// - Throws: ``LivelockError``.
    public func observe<S: AsyncSequence & Sendable>(
        _ sequence: S, consumer: Marbles = "", frames: Int = 0,
        name: @escaping @Sendable (S.Element) -> String = { $0 is Void ? "o" : "\($0)" }
    ) throws -> Marbles {
        // Release the actions: they may hold the stage.
        defer { releaseActions() }
        let requestSource = SignalSource("requests")
        let requestsByDiagram = consumer.marks.contains { $0.event == .request }
        let started = SignalSource("started")
        let task = Task(executorPreference: executor) { [self] in
            var requests = requestSource.signal.makeAsyncIterator()
            var iterator = sequence.makeAsyncIterator()
            var starting = started.signal.makeAsyncIterator()
            await starting.next()
            while true {
                if requestsByDiagram, await requests.next() == nil { return }
                do {
                    guard let element = try await iterator.next(isolation: nil) else {
                        record(.end)
                        return
                    }
                    record(.element(name(element)))
                } catch {
                    record(.failure)
                    return
                }
            }
        }
        try executor.runUntilIdle()
        started.fire()
        play(consumer) { event in
            switch event {
            case .request: requestSource.fire()
            case .cancel: task.cancel()
            case .element, .end, .failure: preconditionFailure("a consumer cannot do this: \(consumer)")  // safe: ditto
            }
        }
        let frames = state.withLock { state in
            state.frames = max(state.frames, frames)
            return state.frames
        }
        for number in 0..<frames {
            try play(frame: number)
        }
        let result = state.withLock { Marbles(marks: $0.marks, frames: $0.frames) }
        task.cancel()
        try executor.runUntilIdle()
        return result
    }

    /// Plays all inputs and throws if the result differs from the diagram.
    ///
    /// The parameters are those of ``observe(_:consumer:frames:name:)``.
    ///
    /// - Throws: ``MarbleMismatch``, whose description shows both diagrams; ``LivelockError``.
    public func expect<S: AsyncSequence & Sendable>(
        _ sequence: S, _ expected: Marbles, consumer: Marbles = "", frames: Int = 0,
        name: @escaping @Sendable (S.Element) -> String = { $0 is Void ? "o" : "\($0)" }
    ) throws {
        let frames = max(frames, expected.frames)
        let observed = try observe(sequence, consumer: consumer, frames: frames, name: name)
        guard observed == expected else {
            throw MarbleMismatch(expected: expected, observed: observed)
        }
    }

    private func play(frame number: Int) throws(LivelockError) {
        let instant = clock.start.advanced(by: frame * number)
        // Fire timers that are due between the frames.
        while let deadline = clock.nextDeadline, deadline < instant, clock.wakeNext(until: deadline) {
            try executor.runUntilIdle()
        }
        clock.show(instant)
        let actions = state.withLock { state in
            state.currentFrame = number
            return state.actions.filter { $0.frame == number }.map(\.act)
        }
        for act in actions {
            act()
        }
        try executor.runUntilIdle()
        while clock.nextDeadline == instant, clock.wakeNext(until: instant) {
            try executor.runUntilIdle()
        }
    }

    private func releaseActions() {
        // Release them after the lock: their deinitializers may call this stage.
        _ = state.withLock { state in
            defer { state.actions = [] }
            return state.actions
        }
    }

    private func record(_ event: Marbles.Event) {
        state.withLock { $0.marks.append(Marbles.Mark(frame: $0.currentFrame, event: event)) }
    }
}

/// The result of a sequence differs from the expected diagram.
public struct MarbleMismatch: Error, Sendable, Equatable, CustomStringConvertible {
    /// The expected diagram.
    public let expected: Marbles
    /// The result.
    public let observed: Marbles

    /// Both diagrams, with a caret below the first frame in which they differ.
    public var description: String {
        let left = Array(expected.description)
        let right = Array(observed.description)
        var same = zip(left, right).prefix { $0 == $1 }.count
        // A group is one frame: put the caret at its beginning.
        while same > 0, left.prefix(same).filter({ $0 == "(" }).count > left.prefix(same).filter({ $0 == ")" }).count {
            same -= 1
        }
        return """
            the result differs from the diagram
            expected  \(expected)
            observed  \(observed)
                      \(String(repeating: " ", count: same))^
            """
    }
}

/// The failure of an `x` in a diagram.
public struct MarbleFailure: Error, Hashable {
    /// All failures are equal.
    public init() {}
}

/// A sequence that plays a diagram for each iteration.
private struct ColdMarbles: AsyncSequence, Sendable {
    let diagram: Marbles
    let clock: ManualClock
    let frame: Duration

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(rest: diagram.marks[...], clock: clock, frame: frame)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var rest: ArraySlice<Marbles.Mark>
        let clock: ManualClock
        let frame: Duration
        var start: ContinuousClock.Instant?
        var isOver = false

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> String? {
            guard !isOver else { return nil }
            let start = self.start ?? clock.now
            self.start = start
            let mark = rest.popFirst()
            // A diagram without an end continues without events; no test moves the clock that far.
            let due = mark.map { frame * $0.frame } ?? .seconds(1_000_000_000)
            do {
                try await clock.sleep(until: start.advanced(by: due))
            } catch {
                isOver = true
                return nil
            }
            switch mark?.event {
            case .element(let name):
                return name
            case .failure:
                isOver = true
                throw MarbleFailure()
            case .end, nil:
                isOver = true
                return nil
            case .request, .cancel:
                preconditionFailure("a sequence cannot request or cancel")  // safe: a diagram in the test itself
            }
        }
    }
}

@available(*, unavailable)
extension ColdMarbles.AsyncIterator: Sendable {}
