/// A descriptor that an ``EventLoop`` watches. It ends when it is cancelled or released.
public final class DescriptorWatch: Sendable {
    private let loop: EventLoop
    private let descriptor: Int32
    private let generation: UInt32

    init(loop: EventLoop, descriptor: Int32, generation: UInt32) {
        self.loop = loop
        self.descriptor = descriptor
        self.generation = generation
    }

    /// Changes the watched events; `[]` still reports hang-up and errors, as epoll(7) does.
    public func change(to interest: Interest) {
        loop.change(descriptor, generation: generation, to: interest)
    }

    /// Ends the watch. If it is called on the loop's thread, the handler does not run again. On another thread, a call
    /// in progress may still end.
    public func cancel() {
        loop.unwatch(descriptor, generation: generation)
    }

    deinit { cancel() }
}
