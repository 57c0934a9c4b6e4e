import FreshetModel
import Synchronization
import TestSupport

@testable import FreshetFleet

/// A fleet in simulated time: members with the real state machine, a scripted engine and a scripted origin.
///
/// Everything that takes time is an item of one queue, so a course depends on its seed only.
struct FleetWorld {
    typealias Instant = ContinuousClock.Instant

    /// What the origin answers.
    enum Answer {
        case content(UInt8)
        case failure(retryAfter: Duration?)
    }

    struct Plan {
        var members = 10_000
        var seed: UInt64 = 1
        /// Members request the origin without a claim, as they would without a fleet.
        var usesClaims = true
        var every: Duration? = .seconds(3_600)
        /// From the start of the world.
        var engineUp: Duration = .zero
        /// When the engine is gone for good.
        var engineDown: Duration?
        /// Members from this number on have no connection before ``cutEnd``.
        var cutFrom = Int.max
        var cutEnd: Duration = .zero
        /// The members start over this time.
        var startWindow: Duration = .seconds(5)
        /// The longest delay before a member connects after the engine is up.
        var connectWindow: Duration = .seconds(10)
        /// The part of the fetchers that die after their request.
        var dying = 0.0
        /// The part of the messages that are lost, or arrive twice.
        var lossy = 0.0
        /// How long a request takes.
        var fetchTime: Duration = .seconds(1)
        /// A head from before the start, so long ago; nil: there is none.
        var headAge: Duration?
        var fallback: FleetSettings.Fallback? = FleetSettings.Fallback()
        var answer: @Sendable (Duration) -> Answer = { _ in .content(1) }
        var rollOut: RollOutPlan?
        /// Content that fails on each member that publishes it.
        var bad: UInt8?
    }

    private enum Item {
        case start(Int)
        case connect(Int)
        case engineDown
        case wake(Int, Instant)
        case deliver(Int, FleetMachine.Event)
        case arrive(Int, FleetMachine.Action)
        case run(Int, FleetRequest.Kind)
        /// The next check, unless another one was planned since.
        case planned(Int, Instant)
        case fetched(Int, alone: Bool)
        case claimEnds(UInt64)
    }

    private struct Member {
        var machine: FleetMachine
        var copy: ContentDigest?
        var isConnected = false
        var isDead = false
        var isRunning = false
        var armed: Instant?
        var planned: Instant?
        var failures = 0
        var publishedAt: Duration?
    }

    /// The last messages of one pipeline, in two streams with one sequence.
    private struct Engine {
        var head: FleetRecord?
        var headSequence: UInt64 = 0
        var claim = FleetClaim()
        var sequence: UInt64 = 0
        var watchers: Set<Int> = []
        var isUp = false
        /// When members reported that content fails.
        var failures: [(digest: ContentDigest, at: Instant)] = []
    }

    let plan: Plan
    private let origin: Instant
    private var now: Instant
    private var queue = TimeQueue<Item>()
    private var random: SeededGenerator
    private var members: [Member] = []
    private var engine = Engine()
    /// When the origin was requested, from the start of the world.
    private(set) var requests: [Duration] = []
    private(set) var deaths = 0
    private(set) var rejections: [RecordRejection] = []
    /// The steps of roll-outs.
    private(set) var rewrites = 0
    /// The obstacles that runs met.
    private(set) var obstacles = 0

    init(_ plan: Plan) {
        self.plan = plan
        origin = .now
        now = origin
        random = SeededGenerator(seed: plan.seed)
        for number in 0..<plan.members {
            let fractions = SeededFractions(plan.seed &* 1_000_003 &+ UInt64(number))
            let settings = FleetSettings(
                machine: "m\(number)", checkPeriod: plan.every, fallback: plan.fallback,
                rollOut: plan.rollOut, share: fraction())
            members.append(Member(machine: FleetMachine(settings, at: now, fraction: { fractions.next() })))
        }
        if let age = plan.headAge {
            (engine.sequence, engine.headSequence) = (1, 1)
            engine.head = record(number: 1, by: "old", checked: now - age)
        }
        for number in members.indices {
            put(.start(number), in: plan.startWindow * fraction())
        }
        if let down = plan.engineDown { put(.engineDown, in: down) }
    }

    // MARK: Results

    /// The largest number of requests in one second.
    var worstSecond: Int {
        Dictionary(grouping: requests) { $0.components.seconds }.values.map(\.count).max() ?? 0
    }

    /// The members whose copy has this content, or that are dead.
    func count(with content: UInt8) -> Int {
        members.count { $0.isDead || $0.copy == Self.digest(content) }
    }

    /// When the last member published its present copy.
    var lastPublication: Duration { members.compactMap(\.publishedAt).max() ?? .zero }

    var rollOut: FleetRecord.RollOut? { engine.head?.rollOut }

    /// An operator stores what is wanted.
    mutating func order(_ kind: FleetOrder.Kind?) {
        engine.sequence += 1
        guard let digest = engine.head?.digest else { return }
        let event = kind.map { FleetEvent.ordered(FleetOrder($0, digest, sequence: engine.sequence)) }
        for other in members.indices where members[other].isConnected {
            publish(event ?? .demanded(engine.sequence), other)
        }
    }

    // MARK: Time

    /// Runs until this time has passed since the start.
    mutating func run(until end: Duration) {
        while let next = queue.first, next <= origin + end, let item = queue.pop() {
            now = next
            perform(item)
        }
        now = origin + end
    }

    private mutating func put(_ item: Item, in delay: Duration) { queue.push(item, at: now + delay) }

    private mutating func fraction() -> Double { Double.random(in: 0..<1, using: &random) }

    private mutating func latency() -> Duration { .microseconds(500) + .milliseconds(20) * fraction() }

    private var elapsed: Duration { origin.duration(to: now) }

    private func wall(_ instant: Instant) -> WallTime {
        WallTime(seconds: 1_795_000_000).advanced(by: origin.duration(to: instant))
    }

    // MARK: Items

    private mutating func perform(_ item: Item) {
        switch item {
        case .start(let number):
            let up = max(.zero, plan.engineUp - elapsed)
            let cut = number >= plan.cutFrom ? max(.zero, plan.cutEnd - elapsed) : .zero
            put(.connect(number), in: max(up, cut) + plan.connectWindow * fraction())
            put(.run(number, .environment), in: .seconds(2))
        case .connect(let number):
            guard elapsed >= plan.engineUp, plan.engineDown.map({ elapsed < $0 }) ?? true else { return }
            engine.isUp = true
            members[number].isConnected = true
            // The heads that changed meanwhile come first.
            if let head = engine.head { handle(.head(head), number) }
            handle(.connected(serverTime: wall(now)), number)
        case .engineDown:
            engine.isUp = false
            for number in members.indices where members[number].isConnected {
                members[number].isConnected = false
                handle(.disconnected, number)
            }
        case .wake(let number, let instant):
            guard members[number].armed == instant else { return }
            members[number].armed = nil
            handle(.timer, number)
        case .deliver(let number, let event):
            guard members[number].isConnected else { return }
            handle(event, number)
        case .arrive(let number, let action): arrive(action, from: number)
        case .run(let number, let kind): run(number, kind)
        case .planned(let number, let instant):
            if members[number].planned == instant { run(number, .environment) }
        case .fetched(let number, let alone): fetched(number, alone: alone)
        case .claimEnds(let sequence):
            guard engine.claim.sequence == sequence, engine.claim.holder != nil else { return }
            storeClaim(nil)
        }
    }

    private mutating func handle(_ event: FleetMachine.Event, _ number: Int) {
        guard !members[number].isDead else { return }
        for action in members[number].machine.handle(event, at: now) { perform(action, number) }
    }

    private mutating func perform(_ action: FleetMachine.Action, _ number: Int) {
        switch action {
        case .watchClaim(true): engine.watchers.insert(number)
        case .watchClaim(false): engine.watchers.remove(number)
        case .read, .claim, .renew, .pause, .release, .publish, .review, .rewrite:
            put(.arrive(number, action), in: latency())
        case .decide(let decision): decided(decision, number)
        case .fire: put(.run(number, .head), in: .seconds(2))
        case .reject(let rejection): rejections.append(rejection)
        case .wake(let instant):
            members[number].armed = instant
            if let instant { queue.push(.wake(number, instant), at: max(now, instant)) }
        }
    }

    // MARK: The engine

    private mutating func arrive(_ action: FleetMachine.Action, from number: Int) {
        guard engine.isUp, members[number].isConnected else { return }
        switch action {
        case .read: answer(.read(engine.head, sequence: engine.headSequence, engine.claim), number)
        case .claim(let expected, let nonce), .renew(let expected, let nonce):
            let holder = FleetClaim.Holder(machine: members[number].machine.settings.machine, nonce: nonce)
            guard expected == engine.claim.sequence else { return answer(.claimed(.conflict), number) }
            storeClaim(holder, lifetime: FleetSettings.claimLifetime)
            answer(.claimed(.stored(sequence: engine.sequence)), number)
        case .pause(let expected, let nonce, let pause):
            guard expected == engine.claim.sequence else { return }
            let holder = FleetClaim.Holder(
                machine: members[number].machine.settings.machine, nonce: nonce, pause: pause)
            storeClaim(holder, lifetime: pause.duration)
        case .release(let expected): if expected == engine.claim.sequence { storeClaim(nil) }
        case .publish(let draft, let expected):
            guard expected == engine.headSequence else { return answer(.published(.conflict), number) }
            engine.sequence += 1
            let machine = members[number].machine.settings.machine
            var new = record(number: draft.number, by: machine, checked: now)
            (new.digest, new.checkedAt) = (draft.digest, draft.checkedAt)
            (new.answeredDemand, new.rollOut) = (draft.answeredDemand, draft.rollOut)
            storeHead(new)
            answer(.published(.stored(sequence: engine.sequence)), number)
        case .review(let digest, let since):
            let failures = engine.failures.count { $0.digest == digest && wall($0.at) >= since }
            answer(.reviewed(engine.head, sequence: engine.headSequence, failures: failures), number)
        case .rewrite(let record, let expected):
            guard expected == engine.headSequence else { return }
            engine.sequence += 1
            rewrites += 1
            storeHead(record)
        case .watchClaim, .decide, .fire, .reject, .wake: break
        }
    }

    private mutating func storeHead(_ record: FleetRecord) {
        (engine.head, engine.headSequence) = (record, engine.sequence)
        for other in members.indices where members[other].isConnected { publish(.head(record), other) }
    }

    private mutating func answer(_ event: FleetMachine.Event, _ number: Int) {
        if fraction() < plan.lossy {
            switch event {
            case .claimed: put(.deliver(number, .claimed(.unknown)), in: .seconds(5))
            case .published: put(.deliver(number, .published(.unknown)), in: .seconds(5))
            default: put(.deliver(number, .readFailed), in: .seconds(5))
            }
            return
        }
        put(.deliver(number, event), in: latency())
    }

    private mutating func publish(_ event: FleetMachine.Event, _ number: Int) {
        if plan.lossy > 0 {
            if fraction() < plan.lossy { return }
            if fraction() < plan.lossy { put(.deliver(number, event), in: latency()) }
        }
        put(.deliver(number, event), in: latency())
    }

    private mutating func storeClaim(_ holder: FleetClaim.Holder?, lifetime: Duration = .zero) {
        engine.sequence += 1
        engine.claim = FleetClaim(sequence: engine.sequence, holder: holder)
        if holder != nil { put(.claimEnds(engine.sequence), in: lifetime) }
        for watcher in engine.watchers.sorted() { publish(.claim(engine.claim), watcher) }
    }

    // MARK: The pipeline of a member

    private mutating func run(_ number: Int, _ kind: FleetRequest.Kind) {
        guard !members[number].isRunning, !members[number].isDead else { return }
        members[number].isRunning = true
        members[number].planned = nil
        guard plan.usesClaims else { return request(number, alone: true) }
        handle(.run(FleetRequest(kind, copy: members[number].copy)), number)
    }

    private mutating func decided(_ decision: FleetDecision, _ number: Int) {
        switch decision {
        case .follow(let record):
            succeeded(number, record.digest)
            handle(.followed(record.number), number)
        case .keep: end(number, next: plan.every)
        case .fetch: request(number, alone: false)
        case .fetchAlone: request(number, alone: true)
        case .wait:
            obstacles += 1
            failed(number)
        }
    }

    private mutating func request(_ number: Int, alone: Bool) {
        requests.append(elapsed)
        if !alone, fraction() < plan.dying {
            deaths += 1
            members[number].isDead = true
            members[number].isConnected = false
            return
        }
        put(.fetched(number, alone: alone), in: plan.fetchTime)
    }

    private mutating func fetched(_ number: Int, alone: Bool) {
        switch plan.answer(elapsed) {
        case .content(let content):
            let digest = Self.digest(content)
            succeeded(number, digest)
            handle(
                alone ? .fetchedAlone(digest) : .ended(.succeeded(digest: digest, size: 1, Validators())), number)
        case .failure(let retryAfter):
            failed(number)
            if !alone { handle(.ended(.failed(reason: "503", retryAfter: retryAfter)), number) }
        }
    }

    private mutating func succeeded(_ number: Int, _ digest: ContentDigest) {
        if members[number].copy != digest {
            members[number].publishedAt = elapsed
            if let bad = plan.bad, digest == Self.digest(bad) { engine.failures.append((digest, now + .seconds(1))) }
        }
        members[number].copy = digest
        members[number].failures = 0
        end(number, next: plan.every)
    }

    private mutating func failed(_ number: Int) {
        members[number].failures += 1
        let limit = min(.seconds(300), .seconds(1) * (1 << min(9, members[number].failures)))
        end(number, next: limit * fraction())
    }

    private mutating func end(_ number: Int, next: Duration?) {
        members[number].isRunning = false
        guard let next else { return }
        members[number].planned = now + next
        queue.push(.planned(number, now + next), at: now + next)
    }

    // MARK: Values

    static func digest(_ content: UInt8) -> ContentDigest {
        guard let digest = ContentDigest(bytes: Array(repeating: content, count: 32)) else {
            preconditionFailure("a digest has 32 bytes")
        }
        return digest
    }

    private func record(number: UInt64, by machine: String, checked: Instant) -> FleetRecord {
        let fingerprint = Self.digest(9)
        var record = FleetRecord(
            fleet: "prod", pipeline: "p", fingerprint: fingerprint, number: number, digest: fingerprint, size: 1,
            checkedAt: wall(checked), madeBy: machine)
        record.members = UInt32(plan.members)
        return record
    }
}

/// Random numbers of one member.
private final class SeededFractions: Sendable {
    private let random: Mutex<SeededGenerator>

    init(_ seed: UInt64) { random = Mutex(SeededGenerator(seed: seed)) }

    func next() -> Double { random.withLock { Double.random(in: 0..<1, using: &$0) } }
}
