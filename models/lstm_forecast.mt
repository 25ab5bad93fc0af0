# The next twelve hours of a load, of its last three days; tools/make_sequences.py series invents hours.
param units = 48            # of each layer
param lr    = 5e-3 in 0..1  # highest learning rate

data {
  examples = csv("series.csv", stride = 1)
  split    = 80 / 20
  past     : f32[72, 1] = column("load")
  next     : f32[12] = column("load")
}

model {
  level    = past[-1]  # the forecast is of changes from here on
  states   = lstm(past - level, units, layers = 2)
  fc       = linear(states[-1], 12)
  forecast = fc + level
  as_day   = mae(reshape(past[48:60], [12]), next)  # of the same hours a day before
}

train {
  loss      = mse(forecast, next)
  metric    = [mae(forecast, next), as_day]
  predict   = forecast
  optimizer = adam(cosine_lr(lr))
  clip_norm = 1
  batch     = 128
  epochs    = 5
}
