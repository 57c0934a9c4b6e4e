import FreshetTestKit

extension MarbleStage {
    /// A sequence that plays the diagram from frame 0 on, whether there is a subscriber or not, for one iteration. Its
    /// elements come before the timers of their frame. Its failure is a ``MarbleFailure``.
    func hot(_ diagram: Marbles) -> AsyncThrowingStream<String, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: String.self)
        for mark in diagram.marks {
            at(frame: mark.frame) {
                switch mark.event {
                case .element(let name): continuation.yield(name)
                case .end: continuation.finish()
                case .failure: continuation.finish(throwing: MarbleFailure())
                case .request, .cancel: preconditionFailure("a sequence cannot do this: \(diagram)")  // safe: in a test
                }
            }
        }
        return stream
    }

    /// The duration of this many frames.
    func frames(_ count: Int) -> Duration { frame * count }
}
