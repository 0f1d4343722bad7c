import composer from 'openwhisk-composer'

/** The smart home of SpecFaaS, listing 1: two branches, seven functions. */
export default composer.if('Login',
  composer.sequence(
    'ReadTemp',
    'Normalize',
    composer.if('CompareTemp',
      'TurnAir'),
    'Done'),
  'Fail')
