"""Dead letters: repeated failures are set aside, and the messages behind them continue.

This applies to messages and to windows; here a message cannot be processed until the program is fixed.
Prints the attempts, the dead letter with its reason, and the successful retry; the client logs a warning
for each failure.
"""

from queenspark import LeasedMessage, Queen

INVOICES = [{"number": 1, "total": "12.50"}, {"number": 2, "total": "4,20"}, {"number": 3, "total": "7"}]


def book(invoice: LeasedMessage) -> None:
    """Cannot read a total with a comma."""
    print(f"invoice {invoice.data['number']}, attempt {invoice.retries + 1}")
    float(invoice.data["total"])


def book_repaired(invoice: LeasedMessage) -> None:
    total = float(invoice.data["total"].replace(",", "."))
    print(f"invoice {invoice.data['number']} is booked: {total:.2f}")


with Queen() as queen:
    invoices = queen.queue("invoices")
    invoices.delete()
    invoices.create(retry_limit=1, retry_delay="100ms")
    invoices.push(INVOICES)

    invoices.each().limit(4).consume(book)
    for letter in invoices.dead_letters():
        print(f"dead letter: invoice {letter.data['number']}, {letter.error_message}")

    invoices.retry_dead_letters()
    invoices.each().limit(1).consume(book_repaired)
    print(f"dead letters left: {len(invoices.dead_letters())}")
