import CMeasure
import Glibc

/// Prints a table of figures, as Markdown that is readable as text.
func printTable(_ title: String, _ rows: [(name: String, figures: Figures)], missing: [String]) {
    let first = rows.first?.figures ?? Figures()
    var lines = [["", "n", "median ns", "least ns", "ratio", "of least", "allocations"]]
    for (name, figures) in rows {
        if let failure = figures.failure {
            lines.append([name, "\(figures.samples.count)", failure, "", "", "", ""])
            continue
        }
        lines.append([
            name, "\(figures.samples.count)", rounded(figures.median), rounded(figures.least),
            rounded(figures.median / first.median), rounded(figures.least / first.least),
            rounded(figures.allocations),
        ])
    }
    print("\n### \(title)\n")
    printLines(lines)
    if !missing.isEmpty { print("") }
    for line in missing { print("- \(line)") }
    fflush(nil)
}

/// One target ratio of Freshet.
struct Budget {
    let text: String
    /// The keys of ``Bench/figures``, and the divisor of each.
    let measured: String
    let against: String
    var divisor = 1.0
    let atMost: Double
}

func printBudgets(_ budgets: [Budget], _ figures: [String: Figures]) {
    var lines = [["budget", "aim: at most", "ratio of medians", "of least"]]
    for budget in budgets {
        guard let measured = figures[budget.measured], let against = figures[budget.against] else { continue }
        lines.append([
            budget.text, rounded(budget.atMost), rounded(measured.median / against.median / budget.divisor),
            rounded(measured.least / against.least / budget.divisor),
        ])
    }
    guard lines.count > 1 else { return }
    print("\n### Budgets\n")
    printLines(lines)
    fflush(nil)
}

/// Prints the rows of a table, the first of which is its header. All columns but the first are numbers.
func printLines(_ lines: [[String]]) {
    guard let head = lines.first else { return }
    let widths = head.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    for (number, line) in lines.enumerated() {
        let cells = line.enumerated().map { column, text in
            let space = String(repeating: " ", count: widths[column] - text.count)
            return column == 0 ? text + space : space + text
        }
        print("| " + cells.joined(separator: " | ") + " |")
        if number == 0 {
            let rules = widths.enumerated().map { column, width in
                column == 0 ? String(repeating: "-", count: width) : String(repeating: "-", count: width - 1) + ":"
            }
            print("| " + rules.joined(separator: " | ") + " |")
        }
    }
}

/// Three significant digits; a small ratio has at least one.
func rounded(_ value: Double) -> String {
    guard value.isFinite else { return "-" }
    if value >= 1000 { return grouped(Int(value.rounded())) }
    let places = value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.095 || value == 0 ? 2 : 4
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let digits = Int((value * scale).rounded())
    guard places > 0 else { return "\(digits)" }
    let fraction = String(digits % Int(scale))
    return "\(digits / Int(scale))." + String(repeating: "0", count: places - fraction.count) + fraction
}

/// With a comma before each group of three digits.
func grouped(_ value: Int) -> String {
    value < 1000 ? "\(value)" : grouped(value / 1000) + "," + String(String(1000 + value % 1000).dropFirst())
}

/// Makes the compiler assume that a value is used.
func use<T>(_ pointer: UnsafePointer<T>) {
    measure_use(pointer)
}
