param seed = 3        # of the noise
param help = 0.5
param log_every = 10  # has an underscore, the flag has not

data {
  train = idx("x", "y")
  x     : f32[4]
  label : class[3]
}

model {
  y = linear(x * seed * help * log_every, 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
