import FreshetModel
import FreshetPipelines

/// Reads `refresh.every` and `refresh.at`: when checks are planned.
struct CalendarReader {
    let reader: DefinitionReader

    /// How many calendar times a pipeline may have.
    static let maximumTimes = 16

    func readTimes(in section: Section, into policy: inout RefreshPolicy) {
        switch reader.value("every", in: section, .period) {
        case .duration(let every): policy.every = every
        case .calendar(let event): policy.calendar = [event]
        case nil: break
        }
        guard let times = reader.list("at", in: section, .calendarEvent) else { return }
        if times.count > Self.maximumTimes {
            reader.addError(
                times[Self.maximumTimes].location, "refresh.at", "'at' has more than \(Self.maximumTimes) times",
                remedy: "join times with lists and ranges, such as Mon..Fri or 06,18:00")
        }
        for (event, location) in times {
            if policy.calendar.contains(event) {
                reader.warning(
                    location, "refresh.at", "\(event.text.quoted) is there twice", remedy: "remove one of them")
            } else {
                policy.calendar.append(event)
            }
        }
    }
}

/// The value of `every`.
private enum Period: Sendable {
    /// Nil: `infinity`.
    case duration(Duration?)
    /// A word such as `daily`.
    case calendar(CalendarEvent)
}

extension ValueKind where Value == Period {
    fileprivate static let period = ValueKind(name: "a duration such as 15min, or a word such as daily") {
        scalar throws(ValueError) in
        let word = scalar.text.prefix { $0 != " " }
        if CalendarEvent.isWord(String(word)) {
            return .calendar(try ValueKind<CalendarEvent>.calendarEvent.read(scalar))
        }
        let duration = ValueKind<Duration?>.durationOrInfinity(RefreshReader.minimumEvery...TimeSpan.longest)
        do throws(ValueError) {
            return .duration(try duration.read(scalar))
        } catch {
            if ["minute", "hour", "day", "week", "month", "year"].contains(scalar.text.lowercased()) {
                throw ValueError(error.message, remedy: "write a number too: every: 1\(scalar.text.lowercased())")
            }
            // `03:00` or `Mon..Fri`.
            guard (try? CalendarEvent(scalar.text)) != nil, scalar.text.contains(where: { !$0.isNumber }) else {
                throw error
            }
            throw ValueError(error.message, remedy: "for times of the day or of the week, write at: '\(scalar.text)'")
        }
    }
}

extension ValueKind where Value == CalendarEvent {
    /// A calendar event in the notation of systemd.time(7).
    static let calendarEvent = ValueKind(name: "a calendar time such as 'Mon..Fri 06:30'") {
        scalar throws(ValueError) in
        let event: CalendarEvent
        do throws(CalendarEvent.ParseError) {
            event = try CalendarEvent(scalar.text)
        } catch {
            let isDuration = (try? TimeSpan.read(scalar.text)) != nil
            throw ValueError(
                error.message,
                remedy: isDuration ? "for a time between checks, write every: \(scalar.text)" : error.remedy)
        }
        guard !event.hasFractions else {
            throw ValueError("has fractions of a second", remedy: "write whole seconds")
        }
        guard event.next(after: WallTime(seconds: 0), in: .utc) != nil else {
            throw ValueError("never comes", remedy: "no year until 2199 has such a day")
        }
        return event
    }
}
