// The overloads differ in how the signal is given and in what the body makes; all are one sequence, `Publish`.

/// Runs a body at each output of a signal, and delivers what the latest run emits.
///
/// ```
/// signal    --s-----s--------|
/// 1st run     -a-b-c
/// 2nd run           -d-e-f-|
/// result    ---a-b---d-e-f-|
/// ```
///
/// - The signal is subscribed when the iterator is made, so nothing is lost before the first `next()`. All outputs
///   until a run starts count as one.
/// - From a new output on nothing of the run before it is delivered. That run is cancelled, and the next one starts
///   when it has returned: a body that ignores cancellation delays the next run.
/// - The end of a run does not end the result while the signal lives; the signal's end lets the run finish. Without a
///   signal there is no run: the result is empty.
/// - An error that the body does not handle fails the result, once, and drops the signal. Handle it inside the body,
///   and the next output runs it again.
/// - A run emits ahead of the consumer by one element.
///
/// - Parameters:
///   - signal: The signal, or nil for none.
///   - body: Makes what a run emits. Each iteration of the result runs it for itself.
public func publish<B: AsyncSequence & Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where B.Element: Sendable {
    Publish(signal: signal ?? .merge(), runsAtStart: false, body: body)
}

/// Runs a body at each output of a sequence that cannot fail, and delivers what the latest run emits.
///
/// As `publish(onOutputFrom:_:)` for a signal. Which of the outputs it was is of no concern to the body.
public func publish<S: AsyncSequence & Sendable, B: AsyncSequence & Sendable>(
    onOutputFrom signal: S, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where S.Failure == Never, B.Element: Sendable {
    Publish(signal: signal, runsAtStart: false, body: body)
}

/// Loads a value at each output of a signal, and delivers that of the latest load.
///
/// As `publish(onOutputFrom:_:)` for a body that makes a sequence of one value.
public func publish<T: Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () async throws -> T
) -> some AsyncSequence<T, any Error> & Sendable {
    publish(onOutputFrom: signal) { Emitter<T, any Error>.once(body) }
}

/// Loads a value at each output of a sequence that cannot fail, and delivers that of the latest load.
///
/// As `publish(onOutputFrom:_:)` for a body that makes a sequence of one value.
public func publish<S: AsyncSequence & Sendable, T: Sendable>(
    onOutputFrom signal: S, _ body: @escaping @Sendable () async throws -> T
) -> some AsyncSequence<T, any Error> & Sendable where S.Failure == Never {
    publish(onOutputFrom: signal) { Emitter<T, any Error>.once(body) }
}

/// Runs a body once, and again at each output of a signal, and delivers what the latest run emits.
///
/// ```
/// signal    ------s--------|
/// 1st run   -a-b-c
/// 2nd run         -d-e-f-|
/// result    -a-b---d-e-f---|
/// ```
///
/// As `publish(onOutputFrom:_:)`, but for the run at the start, which begins with the first `next()`
/// and answers all outputs until then. Without a signal that run is the only one.
///
/// - Parameters:
///   - signal: The signal, or nil for none.
///   - body: Makes what a run emits. Each iteration of the result runs it for itself.
public func publishAndRepeat<B: AsyncSequence & Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where B.Element: Sendable {
    Publish(signal: signal ?? .merge(), runsAtStart: true, body: body)
}

/// Runs a body once, and again at each output of a sequence that cannot fail, and delivers what the latest run emits.
///
/// As `publishAndRepeat(onOutputFrom:_:)` for a signal. Which of the outputs it was is of no concern to the body.
public func publishAndRepeat<S: AsyncSequence & Sendable, B: AsyncSequence & Sendable>(
    onOutputFrom signal: S, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where S.Failure == Never, B.Element: Sendable {
    Publish(signal: signal, runsAtStart: true, body: body)
}

/// Loads a value once, and again at each output of a signal, and delivers that of the latest load.
///
/// As `publishAndRepeat(onOutputFrom:_:)` for a body that makes a sequence of one value.
public func publishAndRepeat<T: Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () async throws -> T
) -> some AsyncSequence<T, any Error> & Sendable {
    publishAndRepeat(onOutputFrom: signal) { Emitter<T, any Error>.once(body) }
}

/// Loads a value once, and again at each output of a sequence that cannot fail, and delivers that of the latest load.
///
/// As `publishAndRepeat(onOutputFrom:_:)` for a body that makes a sequence of one value.
public func publishAndRepeat<S: AsyncSequence & Sendable, T: Sendable>(
    onOutputFrom signal: S, _ body: @escaping @Sendable () async throws -> T
) -> some AsyncSequence<T, any Error> & Sendable where S.Failure == Never {
    publishAndRepeat(onOutputFrom: signal) { Emitter<T, any Error>.once(body) }
}

struct Publish<S: AsyncSequence & Sendable, B: AsyncSequence & Sendable>: AsyncSequence, Sendable
where S.Failure == Never, B.Element: Sendable {
    typealias Element = B.Element
    typealias Failure = B.Failure

    let signal: S
    let runsAtStart: Bool
    let body: @Sendable () throws(B.Failure) -> B

    func makeAsyncIterator() -> AsyncIterator {
        let storage = PublishStorage<S, B>(signal.makeAsyncIterator(), runsAtStart: runsAtStart, body: body)
        return AsyncIterator(owner: DriverOwner { driver throws(B.Failure) in try await storage.operate(driver) })
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        let owner: DriverOwner<B.Element, B.Failure>

        mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws(B.Failure) -> B.Element? {
            try await owner.next(isolation: isolation)
        }
    }
}

@available(*, unavailable)
extension Publish.AsyncIterator: Sendable {}
