import composer from 'openwhisk-composer'

/** The variants of the application: the same eleven functions in Python, in Node, and in Python, Node and Go mixed. */
export const variants = ['python', 'node', 'mixed']

/**
 * FlightBook: a flight, and with it a hotel and a car. Eleven functions, three branches.
 * @param {string} variant whose functions it is made of
 * @returns {object} the composition
 */
export function flightbook (variant) {
  const step = name => composer.action(`flightbook-${variant}-${name}`)
  return composer.sequence(
    step('FindFlight'),
    composer.if(step('CheckSeats'),
      composer.sequence(
        step('ForecastDelay'),
        step('PriceTrip'),
        composer.if(step('CheckCustomer'),
          composer.sequence(
            step('ReserveSeat'),
            step('ReserveHotel'),
            step('ReserveCar'),
            composer.if(step('TakePayment'),
              step('Confirm'),
              step('Decline'))),
          step('Decline'))),
      step('Decline')))
}
