# The heat equation u_t = 0.1 u_xx on a rod whose ends are at 0, from u = sin(pi x): a network that is told the equation, and no value of u.
param width = 32            # neurons of a layer
param lr    = 2e-3 in 0..1  # learning rate

data {
  train       = npz("heat/train.npz")
  test        = npz("heat/test.npz")
  at          : f32[2]  # time and place, from 0 to 1
  temperature : f32     # the known solution, exp(-0.1 pi^2 t) sin(pi x); compared with, not learned from
}

model {
  t        = at[0]
  x        = at[1]
  h        = tanh(linear(at, width))
  h2       = tanh(linear(h, width))
  network  = linear(h2, 1)[0]
  u        = sin(3.14159265 * x) + t * x * (1 - x) * network  # begins as told, and stays 0 at both ends
  slope    = grad(u, at)
  bend     = grad(slope[1], at)[1]
  residual = slope[0] - 0.1 * bend
}

train {
  loss      = square(residual)
  metric    = [mae(u, temperature), rmse(u, temperature)]
  predict   = u
  optimizer = adam(cosine_lr(lr))
  batch     = 64
  epochs    = 40
}
