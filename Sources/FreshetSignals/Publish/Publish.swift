// The overloads differ in the type of the signal and of the body; all return one sequence, `Publish`.

/// Runs a body at each output of a signal, and delivers the elements of the latest run.
///
/// ```
/// signal    --s-----s--------|
/// 1st run     -a-b-c
/// 2nd run           -d-e-f-|
/// result    ---a-b---d-e-f-|
/// ```
///
/// - **Start.** Making the iterator subscribes to the signal, so no output is lost before the first `next()`. All
///   outputs before the start of a run count as one.
/// - **Replacement.** After a new output, no element of the run in progress is delivered. That run is cancelled, and
///   the next run starts when it has returned: a body that ignores cancellation delays the next run.
/// - **The end.** The end of a run does not end the result while the signal is open. When the signal ends, the last run
///   can finish, then the result ends. Without a signal there is no run: the result is empty.
/// - **Errors.** An error that the body does not handle fails the result, once, and ends the subscription to the
///   signal. To continue after an error, handle it inside the body: the next output then runs the body again.
/// - **Back-pressure.** A run is ahead of the consumer by one element.
///
/// - Parameters:
///   - signal: The signal, or nil for none.
///   - body: Makes the sequence of a run. Each iteration of the result runs the body for itself.
public func publish<B: AsyncSequence & Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where B.Element: Sendable {
    Publish(signal: signal ?? .merge(), runsAtStart: false, body: body)
}

/// Runs a body at each output of a sequence that cannot fail, and delivers the elements of the latest run.
///
/// Like `publish(onOutputFrom:_:)` for a signal. The body does not get the output.
public func publish<S: AsyncSequence & Sendable, B: AsyncSequence & Sendable>(
    onOutputFrom signal: S, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where S.Failure == Never, B.Element: Sendable {
    Publish(signal: signal, runsAtStart: false, body: body)
}

/// Loads a value at each output of a signal, and delivers the value of the latest load.
///
/// Like `publish(onOutputFrom:_:)` for a body that makes a sequence of one value.
public func publish<T: Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () async throws -> T
) -> some AsyncSequence<T, any Error> & Sendable {
    publish(onOutputFrom: signal) { Emitter<T, any Error>.once(body) }
}

/// Loads a value at each output of a sequence that cannot fail, and delivers the value of the latest load.
///
/// Like `publish(onOutputFrom:_:)` for a body that makes a sequence of one value.
public func publish<S: AsyncSequence & Sendable, T: Sendable>(
    onOutputFrom signal: S, _ body: @escaping @Sendable () async throws -> T
) -> some AsyncSequence<T, any Error> & Sendable where S.Failure == Never {
    publish(onOutputFrom: signal) { Emitter<T, any Error>.once(body) }
}

/// Runs a body once, and again at each output of a signal, and delivers the elements of the latest run.
///
/// ```
/// signal    ------s--------|
/// 1st run   -a-b-c
/// 2nd run         -d-e-f-|
/// result    -a-b---d-e-f---|
/// ```
///
/// Like `publish(onOutputFrom:_:)`, with a first run that begins with the first `next()` and answers all outputs until
/// then. Without a signal that run is the only one.
///
/// - Parameters:
///   - signal: The signal, or nil for none.
///   - body: Makes the sequence of a run. Each iteration of the result runs the body for itself.
public func publishAndRepeat<B: AsyncSequence & Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where B.Element: Sendable {
    Publish(signal: signal ?? .merge(), runsAtStart: true, body: body)
}

/// Runs a body once, and again at each output of a sequence that cannot fail, and delivers the elements of the latest
/// run.
///
/// Like `publishAndRepeat(onOutputFrom:_:)` for a signal. The body does not get the output.
public func publishAndRepeat<S: AsyncSequence & Sendable, B: AsyncSequence & Sendable>(
    onOutputFrom signal: S, _ body: @escaping @Sendable () throws(B.Failure) -> B
) -> some AsyncSequence<B.Element, B.Failure> & Sendable where S.Failure == Never, B.Element: Sendable {
    Publish(signal: signal, runsAtStart: true, body: body)
}

/// Loads a value once, and again at each output of a signal, and delivers the value of the latest load.
///
/// Like `publishAndRepeat(onOutputFrom:_:)` for a body that makes a sequence of one value.
public func publishAndRepeat<T: Sendable>(
    onOutputFrom signal: Signal?, _ body: @escaping @Sendable () async throws -> T
) -> some AsyncSequence<T, any Error> & Sendable {
    publishAndRepeat(onOutputFrom: signal) { Emitter<T, any Error>.once(body) }
}

/// Loads a value once, and again at each output of a sequence that cannot fail, and delivers the value of the latest
/// load.
///
/// Like `publishAndRepeat(onOutputFrom:_:)` for a body that makes a sequence of one value.
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
